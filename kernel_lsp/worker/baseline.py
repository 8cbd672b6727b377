"""The baselines of a module: eager and torch.compile in its modes, timed in a process that no candidate runs in."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from kernel_lsp import schema
from kernel_lsp.validation import failures, timing
from kernel_lsp.worker import gpu_lock, memory_quota, preparing

#: sets of inputs that the runs rotate through
_SETS = 3


def measure(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"modes": {mode: {"eager": Timing, "compiled": Timing, "seconds": s, "beside": text}}, "missing": {mode: why}}``.

    ``given["modes"]``: of "default", "reduce-overhead", "max-autotune"; each is emitted as "baseline" when it is known.
    Eager is timed again beside each. ``seconds``: what compiling and timing took, without waiting for the GPU; ``beside``: other
    work while it was timed.

    Raises:
        UserError: importing or building fails.
        GpuTaken: others timed on the GPU for too long before it began; where they did so later, modes are missing.
    """
    found: dict[str, Any] = {"modes": {}, "missing": {}}
    where, locks = torch.device(given["device"]), []
    known = given.get("rates") or None  # as where the kernel is timed, or the two could not be compared
    try:
        module, args, kwargs = preparing.on_device(given, lambda: locks.append(memory_quota.begin(given, where, emit)))
        inputs = timing.rotated(args, kwargs, _SETS)
    except torch.OutOfMemoryError as error:
        why = f"torch.compile: not enough GPU memory for the example: {str(error).splitlines()[0]}"
        return {"modes": {}, "missing": {mode: why for mode in given["modes"]}}
    del args, kwargs
    (lock,) = locks

    def time_mode(mode: str, last: bool) -> None:
        """Raises ``Failure`` where the GPU was not to be had before or afterwards; what was timed then is kept."""
        nonlocal known
        began, waited = time.monotonic(), lock.waited
        try:
            calls = _compiled(module, inputs, mode)  # beside the checks of others; only timing needs the GPU alone
            with torch.no_grad(), gpu_lock.alone(lock, then_share=not last) as said:
                if known is None:
                    known = {"beyond": timing.overhead_by_spans()}
                timings = timing.interleaved(calls, inputs, beyond=known.get("beyond"))
                one: dict[str, Any] = {"beside": said(), **{name: schema.to_json(t) for name, t in timings.items()}}
                one["seconds"] = round(time.monotonic() - began - (lock.waited - waited), 2)
                found["modes"][mode] = one
                emit("baseline", {"mode": mode, **one})
        except failures.Failure:  # nothing but waiting raises it here
            raise
        except Exception as error:
            traceback.print_exc()
            found["missing"][mode] = f"torch.compile: {failures.sentence(error)}"

    try:
        for number, mode in enumerate(given["modes"]):
            message = f"compiling with torch.compile ({mode})"
            emit("progress", {"stage": "baseline", "message": message, "fraction": number / len(given["modes"])})
            time_mode(mode, number + 1 == len(given["modes"]))
    except failures.Failure as failure:
        for mode in given["modes"]:
            if mode not in found["modes"]:
                found["missing"].setdefault(mode, f"torch.compile: {failure.reason}")
    return found


def _compiled(module: torch.nn.Module, inputs: list[tuple[Any, Any]], mode: str) -> dict[str, Callable[..., Any]]:
    """What is timed: eager, and the module in a mode of torch.compile, which has compiled for ``inputs``."""
    torch._dynamo.reset()
    compiled = torch.compile(module, mode=None if mode == "default" else mode)

    def eager(args: Any, kwargs: Any) -> Any:
        return module(*args, **kwargs)

    def of_compile(args: Any, kwargs: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()  # what the call before returned is not needed any more
        return compiled(*args, **kwargs)

    with torch.no_grad():
        for args, kwargs in inputs:
            of_compile(args, kwargs)
        torch.cuda.synchronize()
    return {"eager": eager, "compiled": of_compile}

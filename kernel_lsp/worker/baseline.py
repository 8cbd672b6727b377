"""The baselines of a module: eager and torch.compile in its modes, timed in a process that no candidate runs in."""

from __future__ import annotations

import time
import traceback
from typing import Any

import torch

from kernel_lsp import schema
from kernel_lsp.validation import failures, timing
from kernel_lsp.worker import gpu_contention, gpu_lock, preparing

#: sets of inputs that the runs rotate through
_SETS = 3


def measure(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"modes": {mode: {"eager": Timing, "compiled": Timing, "seconds": s, "beside": text}}, "missing": {mode: why}}``.

    ``given["modes"]``: of "default", "reduce-overhead", "max-autotune"; each is emitted as "baseline" when it is known.
    Eager is timed again beside each. ``seconds``: what compiling and timing took; ``beside``: other work meanwhile.

    Raises:
        UserError: importing or building fails.
    """
    found: dict[str, Any] = {"modes": {}, "missing": {}}
    known = given.get("rates") or None  # as where the kernel is timed, or the two could not be compared
    try:
        module, args, kwargs = preparing.on_device(given)
        inputs = timing.rotated(args, kwargs, _SETS)
    except torch.OutOfMemoryError as error:
        why = f"torch.compile: not enough GPU memory for the example: {str(error).splitlines()[0]}"
        return {"modes": {}, "missing": {mode: why for mode in given["modes"]}}
    del args, kwargs
    for number, mode in enumerate(given["modes"]):
        message = f"compiling with torch.compile ({mode})"
        emit("progress", {"stage": "baseline", "message": message, "fraction": number / len(given["modes"])})
        began = time.monotonic()
        try:
            until, where = time.monotonic() + float(given.get("seconds") or 0.0), torch.device(given["device"])
            with gpu_lock.held(given.get("locks"), where, until, emit):
                timed_from = time.time()
                if known is None:
                    known = {"beyond": timing.overhead_by_spans()}
                timings = _timed(module, inputs, mode, known.get("beyond"))
            one: dict[str, Any] = {"beside": gpu_contention.said(where, timed_from)}
        except Exception as error:
            traceback.print_exc()
            found["missing"][mode] = f"torch.compile: {failures.sentence(error)}"
            continue
        one |= {name: schema.to_json(t) for name, t in timings.items()}
        found["modes"][mode] = one | {"seconds": round(time.monotonic() - began, 2)}
        emit("baseline", {"mode": mode, **found["modes"][mode]})
    return found


def _timed(
    module: torch.nn.Module, inputs: list[tuple[Any, Any]], mode: str, beyond: float | None
) -> dict[str, schema.Timing]:
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
        return timing.interleaved({"eager": eager, "compiled": of_compile}, inputs, beyond=beyond)

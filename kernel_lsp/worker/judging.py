"""The judge child: forks the trial before anything touches CUDA, then holds the referee; and the compile report."""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors, schema
from kernel_lsp.validation import channel, sandbox, screening
from kernel_lsp.validation.inputs import from_example
from kernel_lsp.validation.referee import Reach, Referee
from kernel_lsp.validation.trial import Trial, serve
from kernel_lsp.worker import building, examples, faking, importing, processes, specimen

#: seconds after which checks that are not essential are left out
SOFT_SECONDS = {"interpreter": 3.0, "gpu": 0.8}


def warm_up() -> None:
    """Have imported what the first poisoned call would import (most of torch._dynamo: seconds)."""
    import torch._dynamo

    from kernel_lsp.validation.guards import Guards, Poisoned

    with torch.no_grad(), Poisoned(Guards()):
        torch.empty_like(torch.zeros(4)).zero_().clone()


def judge(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"verdict", "measurement", "rates"}`` for a candidate. Raises the user errors of importing and building."""
    class_name, device = given["class_name"], given["device"]
    kernel_class = class_name.rpartition(".")[2] + "Triton"
    if rejected := screening.screen(given["source"], kernel_class):
        reason, line = rejected
        verdict = schema.Verdict("rejected", reason, line)
        emit("verdict", schema.to_json(verdict))
        return {"verdict": schema.to_json(verdict), "measurement": None}
    deadline = time.monotonic() + given["seconds"]
    reach = _fork_trial(given, kernel_class, deadline)
    try:
        referee = _referee(given, reach, emit)
        verdict = referee.verdict()
        if referee.mode == "gpu" and verdict.status in schema.CORRECT:
            kernels, _, _ = referee.ask({"do": "kernels"})
            verdict.kernels = [schema.from_json(schema.CompiledKernel, k) for k in kernels["kernels"]]
        emit("verdict", schema.to_json(verdict))
        measurement, rates = _measurement(given, referee, verdict, emit)
        if referee.deferred and verdict.status in schema.CORRECT:
            last = referee.finish()
            last.kernels = verdict.kernels
            if last.status == "ok":  # the speed has been judged already
                last.status, last.reason = verdict.status, verdict.reason
            verdict = last
        measured = None if measurement is None else schema.to_json(measurement)
        return {"verdict": schema.to_json(verdict), "measurement": measured, "rates": rates}
    except torch.OutOfMemoryError as error:
        detail = str(error).splitlines()[0]
        raise errors.GpuOutOfMemory(device=device, class_name=class_name, detail=detail) from None
    finally:
        reach.kill()


def _referee(given: dict[str, Any], reach: Reach, emit: Any) -> Referee:
    """The module, its example and the plan of checks, on the device. Raises the user errors of importing and building."""
    path, class_name, device = given["path"], given["class_name"], given["device"]
    mode = "interpreter" if device == "interpreter" else "gpu"
    where = torch.device("cpu" if mode == "interpreter" else device)
    user_module, cls = importing.load(path, class_name)
    if mode == "gpu":
        torch.set_num_threads(given["threads"])
        _start_cuda(device)

    def make(seed: int) -> examples.Example:
        return examples.resolve(user_module, cls, path, class_name, given.get("inputs"), seed)

    try:  # made where they are needed: random numbers for a large input take long on the CPU
        with torch.device(where):
            example = make(0)
            module = building.construct(cls, example, path, class_name)
    except errors.UserError:
        if mode == "interpreter":
            raise
        example = make(0)
        module = building.construct(cls, example, path, class_name)
    _check_inputs(example, class_name, path)
    names = specimen.input_names(cls, example.args, example.kwargs)
    leaves = pytree.tree_leaves((example.args, example.kwargs))
    names = [n for n, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.Tensor)]
    args, kwargs = pytree.tree_map(
        lambda t: channel.moved(t.detach(), where) if isinstance(t, torch.Tensor) else t, (example.args, example.kwargs)
    )
    inputs = from_example(args, kwargs, given["specimen"], where, names)

    def again(seed: int) -> Any:
        other = make(seed)
        return other.args, other.kwargs

    inputs.again = again
    return Referee(module.to(where), inputs, reach, mode, emit, SOFT_SECONDS[mode])


def _start_cuda(device: str) -> None:
    try:
        torch.cuda.init()
        torch.cuda.set_device(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        detail = str(error).splitlines()[0]
        raise errors.NoSuchDevice(device=device, interpreter=sys.executable, detail=detail) from None


def _measurement(
    given: dict[str, Any], referee: Referee, verdict: schema.Verdict, emit: Any
) -> tuple[schema.Measurement | None, dict[str, float] | None]:
    if referee.mode == "interpreter":
        return schema.Measurement(missing=_why_no_gpu()), None
    how = given.get("measure") or "full"
    if how == "none" or verdict.status not in schema.CORRECT:
        return None, None
    from kernel_lsp.validation import measuring

    try:
        return measuring.measure(referee, verdict, given["specimen"], how, given.get("rates"), emit)
    except torch.OutOfMemoryError as error:  # the verdict stands
        return schema.Measurement(missing=f"out of GPU memory while measuring: {str(error).splitlines()[0]}"), None


def _check_inputs(example: examples.Example, class_name: str, path: str) -> None:
    try:
        channel.describe((list(example.args), example.kwargs), [])
    except channel.Opaque as error:
        raise errors.InputsNotSupported(path=path, class_name=class_name, kind=f"a {error}") from None


def _why_no_gpu() -> str:
    if not torch.version.cuda:
        return f"no CUDA GPU here: torch {torch.__version__} is built without CUDA"
    return "no CUDA GPU here, or the interpreter was asked for"


def _fork_trial(given: dict[str, Any], kernel_class: str, deadline: float) -> Reach:
    """Start the trial in a process of its own; it keeps one end of a socket and nothing else of this process."""
    folder = os.path.join(given["scratch"], "trial")
    source = _written(given["source"], folder, kernel_class)
    mine, theirs = channel.pair()
    pid = processes.fork()
    if pid == 0:
        os.close(given["answers"])  # the verdict is not the trial's to send
        mine.close()
        try:
            _trial(given, kernel_class, source, folder, channel.Channel(theirs))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    theirs.close()
    ended: list[str] = []

    def reap() -> str:
        if not ended:
            _, status = os.waitpid(pid, 0)
            ended.append(processes.describe(status))
        return ended[0]

    def kill() -> None:
        if not ended:
            processes.kill_group(pid)
            reap()

    return Reach(channel.Channel(mine), reap, kill, deadline)


def _trial(given: dict[str, Any], kernel_class: str, source: str, folder: str, end: channel.Channel) -> None:
    path, class_name = given["path"], given["class_name"]
    device = given["device"]
    if device != "interpreter":
        import triton

        torch.cuda.init()
        torch.cuda.set_device(torch.device(device))
        # Triton's own helper library comes from the user's cache: with one of our own a C compiler would build it anew.
        _ = triton.runtime.driver.active.utils
    sandbox.enter(folder, device == "interpreter")
    if device != "interpreter":  # there the tensors are small, and threads would only wait for each other
        torch.set_num_threads(given["threads"])
    user_module, cls = importing.load(path, class_name)
    init = examples.constructor(user_module, cls, path, class_name, given.get("inputs"))
    print(f"trial {os.getpid()} of {kernel_class}", file=sys.stderr)
    serve(end, Trial(source, kernel_class, init, cls, device))


def compile_report(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"kernels", "error", "limits"}``: what the compiler makes of the candidate for a GPU that is not here."""
    from kernel_lsp.validation import compilation

    path, class_name = given["path"], given["class_name"]
    kernel_class = class_name.rpartition(".")[2] + "Triton"
    if screening.screen(given["source"], kernel_class):
        return {"kernels": [], "error": None, "limits": []}
    folder = os.path.join(given["scratch"], "compile")
    source = _written(given["source"], folder, kernel_class)
    user_module, cls = importing.load(path, class_name)
    torch.set_num_threads(given["threads"])
    mode = faking.mode()

    def hollow() -> Any:
        example = specimen.example_of(given, user_module, cls, mode)
        args, kwargs = pytree.tree_map(faking.hollow, (example.args, example.kwargs))

        def make(kind: type) -> torch.nn.Module:
            with faking.within(mode):
                instance = kind(*example.init_args, **example.init_kwargs).eval()
            return faking.hollowed(instance)

        return make, args, kwargs

    def real() -> Any:
        example = specimen.example_of(given, user_module, cls, None)
        return lambda kind: kind(*example.init_args, **example.init_kwargs).eval(), example.args, example.kwargs

    return compilation.report(source, kernel_class, given["source"], [hollow, real], folder)


def _written(source: str, folder: str, kernel_class: str) -> str:
    """The candidate as a file in ``folder``: Triton reads the source of its functions from there."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{kernel_class}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    return path

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
from kernel_lsp.worker import building, examples, importing, processes, specimen

#: seconds after which checks that are not essential are left out
SOFT_SECONDS = {"interpreter": 2.0, "gpu": 6.0}


def judge(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"verdict", "measurement", "rates"}`` for a candidate. Raises the user errors of importing and building."""
    path, class_name, device = given["path"], given["class_name"], given["device"]
    kernel_class = class_name.rpartition(".")[2] + "Triton"
    if rejected := screening.screen(given["source"], kernel_class):
        reason, line = rejected
        verdict = schema.Verdict("rejected", reason, line)
        emit("verdict", schema.to_json(verdict))
        return {"verdict": schema.to_json(verdict), "measurement": None}
    deadline = time.monotonic() + given["seconds"]
    reach = _fork_trial(given, kernel_class, deadline)
    try:
        user_module, cls = importing.load(path, class_name)
        torch.set_num_threads(given["threads"])
        mode = "interpreter" if device == "interpreter" else "gpu"
        where = torch.device("cpu" if mode == "interpreter" else device)
        example = examples.resolve(user_module, cls, path, class_name, given.get("inputs"))
        module = building.construct(cls, example, path, class_name)
        names = specimen.input_names(cls, example.args, example.kwargs)
        leaves = pytree.tree_leaves((example.args, example.kwargs))
        names = [n for n, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.Tensor)]
        _check_inputs(example, class_name, path)
        module = _moved(module, where)
        inputs = from_example(example.args, example.kwargs, given["specimen"], where, names)
        referee = Referee(module, inputs, reach, mode, emit, SOFT_SECONDS[mode])
        verdict = referee.verdict()
        emit("verdict", schema.to_json(verdict))
        measurement = None
        if mode == "interpreter":
            measurement = schema.Measurement(missing=_why_no_gpu())
        return {"verdict": schema.to_json(verdict), "measurement": schema.to_json(measurement)}
    finally:
        reach.kill()


def _moved(module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    return module.to(device)


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
        torch.cuda.init()
    sandbox.enter(folder, device == "interpreter")
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
    example = examples.resolve(user_module, cls, path, class_name, given.get("inputs"))
    return compilation.report(
        source,
        kernel_class,
        given["source"],
        (example.init_args, example.init_kwargs),
        example.args,
        example.kwargs,
        folder,
    )


def _written(source: str, folder: str, kernel_class: str) -> str:
    """The candidate as a file in ``folder``: Triton reads the source of its functions from there."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{kernel_class}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    return path

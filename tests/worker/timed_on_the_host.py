"""Runs ``validate``, ``tune`` or ``compare`` where there is no GPU: under the interpreter, memory lent on the host, a clock of the host.

Everything else is as on a GPU: trials in processes of their own, one of them for all schedules. It reads one JSON object a line and forks
a process for each, since importing torch takes seconds: ``{"task", "request", "fast", "answer", "log"}``, with the file of the request, the
index of the kernel whose time is divided by 400 (of two, "1,2", that of the other is by 20), the files for the answer and for what is
written to standard error. It prints the wait status of that process. The answer also says whether other processes could have had the GPU's
lock meanwhile, and that on its memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
import traceback
from typing import Any, NoReturn

os.environ["TRITON_INTERPRET"] = "1"

import torch

from kernel_lsp import child_processes, schema
from kernel_lsp.validation import interpreter, measuring, recorded, roofline, timing, tuning
from kernel_lsp.worker import comparing, gpu_lock, preparing, validating


def _on_the_clock(fast: str) -> Any:
    factor = dict(zip(fast.split(","), (400, 20), strict=False))

    def interleaved(calls: Any, inputs: Any, seconds: float = 1.0, **_: Any) -> dict[str, schema.Timing]:
        found = {}
        for name, call in calls.items():
            took = min(_microseconds(call, inputs[0]) for _ in range(2)) / factor.get(name, 1)
            found[name] = schema.Timing(took, took, took, 1)
        return found

    return interleaved


def _microseconds(call: Any, arguments: Any) -> float:
    began = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - began) * 1e6


def _could_have(path: str) -> str:
    """How another process could have the lock now: "alone", "shared", or not at all."""
    with open(path, "a") as file:
        for how, said in ((fcntl.LOCK_EX, "alone"), (fcntl.LOCK_SH, "shared")):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, how | fcntl.LOCK_NB)
                return said
    return "not"


def _rounds_on_the_clock(fast: str) -> Any:
    def rounds(calls: Any, inputs: Any, *_: Any, **__: Any) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(15):
            for name, call in calls.items():
                found[name].append(_on_the_clock(fast)({name: call}, inputs)[name].median)
        return found

    return rounds


def run(task: str, request: str, fast: str, answer: str) -> None:
    torch.cuda.set_device = lambda device: None  # type: ignore[assignment]
    measuring._CLOCK_FACTOR = 1e9  # the clocks here are not a GPU's
    tuning._LEAST_PROCESSORS = 1  # as on a machine with many
    recorded.SECONDS = 60.0  # the interpreter takes long for what a GPU does in microseconds
    rates = {"copy_bandwidth": 1e12, "float16": 1e12, "tf32": 1e12, "float32": 1e12}
    roofline.rates = lambda: rates
    timing.interleaved = _on_the_clock(fast)
    timing.rounds = _rounds_on_the_clock(fast)
    timing.captured = lambda call, inputs: None
    timing.rotated = lambda args, kwargs, count: [(args, kwargs)]
    measuring._device = lambda where, *rates: schema.Device("the host", "cuda", "", *rates)
    with open(request) as file:
        given = json.load(file)
    measuring._EAGER_FACTOR = given.pop("eager_factor", 1e9)
    _, given["answers"] = os.pipe()
    events: list[Any] = []
    lock = os.path.join(given["locks"], "cpu.lock") if given.get("locks") else ""
    others: dict[str, list[str]] = {"check": [], "time": [], "memory": []}
    moved: list[float] = []
    referee, prepare, on_the_clock = validating.referee_of, preparing.prepare, timing.interleaved

    def as_on_a_gpu(given: Any, reach: Any, *rest: Any) -> Any:
        before = reach.deadline
        made = referee(given, reach, *rest)
        made.mode = "gpu"
        moved.append(reach.deadline - before)
        return made

    def prepare_with_the_lock(given: Any, before_gpu: Any) -> Any:
        before_gpu()
        return prepare(given, before_gpu)

    def interleaved(*arguments: Any, **named: Any) -> Any:
        if lock and os.getpid() == this:  # eager alone, which the referee times itself
            others["time"].append(_could_have(lock))
            others["memory"].append(_could_have(lock.replace(".lock", f".memory-{gpu_lock.PARTS - 1}")))
        return on_the_clock(*arguments, **named)

    def heard(name: str, data: Any) -> None:
        events.append([name, data])
        if lock and name == "progress" and data["stage"] == "check" and "waiting" not in data["message"]:
            others["check"].append(_could_have(lock))
            others["memory"].append(_could_have(lock.replace(".lock", f".memory-{gpu_lock.PARTS - 1}")))

    this = os.getpid()
    validating.referee_of, preparing.prepare, timing.interleaved = as_on_a_gpu, prepare_with_the_lock, interleaved
    do = {"validate": validating.validate, "tune": validating.tune, "compare": comparing.compare}[task]
    result = do(given, heard)
    with open(answer, "w") as file:
        json.dump(
            {"result": result, "others": others, "moved": moved}
            | {"waited": sum(d["seconds"] for n, d in events if n == "waiting")}
            | {f"{kind}s": [d for n, d in events if n == kind] for kind in ("verdict", "measurement")},
            file,
        )


def main() -> None:
    torch.set_num_threads(1)
    interpreter.repair()
    validating.warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        pid = child_processes.fork()
        if pid == 0:
            _in_a_child(asked)
        print(os.waitpid(pid, 0)[1], flush=True)


def _in_a_child(asked: dict[str, str]) -> NoReturn:
    """What it prints goes to the log, too: standard output is for the statuses."""
    log = os.open(asked["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        run(asked["task"], asked["request"], asked["fast"], asked["answer"])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()

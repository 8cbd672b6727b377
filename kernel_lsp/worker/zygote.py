"""Warm processes that fork a child for every task, so that a task starts in milliseconds with torch imported.

There are three. Two, because Triton reads ``TRITON_INTERPRET`` when a function is decorated, also those of its own library:
one process cannot interpret and compile; and one that knows of no validation (unmarked_process.py). All are forked from one that
has imported torch alone:

    keeper ── "native"       triton, torch.export (warmed up by one tiny export), the synthesizer
                ├── "interpreter"   triton under TRITON_INTERPRET=1, with validation's repairs of it
                └── "unmarked"         torch alone

None ever touches CUDA, not even to count GPUs, and none starts a thread (an OpenMP pool would hang in a forked child), which
is why torch is held to one thread here; the children get the number back.

A zygote is told, over a ``SOCK_SEQPACKET`` socket: ``{"start": key, "task": name}`` with the descriptors (parameters,
answers, standard error, and the task's own), or ``{"kill": key}``. It says ``{"ready": seconds}``, ``{"failed": error}``,
``{"started": key, "pid": n}`` and ``{"exited": key, "status": wait status}``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from kernel_lsp import child_processes, errors
from kernel_lsp.worker import keeper

ROLES = ("native", "interpreter", "unmarked")


def start(close_in_child: list[int], folders: list[str], group: str) -> dict[str, socket.socket]:
    """Fork the keeper with all zygotes below it; the manager's ends of their sockets, by role.

    Call it before anything starts threads. ``folders`` and ``group``: what the keeper removes at the end.
    """
    pairs = {role: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for role in ROLES}

    def fork(tell: int) -> None:
        for mine, _ in pairs.values():
            mine.detach()  # the keeper has closed it
        if child_processes.fork() == 0:
            _main({role: theirs for role, (_, theirs) in pairs.items()}, tell)
        for _, theirs in pairs.values():
            theirs.close()

    keeper.start(folders, group, [*close_in_child, *(mine.fileno() for mine, _ in pairs.values())], fork)
    for _, theirs in pairs.values():
        theirs.close()
    return {role: mine for role, (mine, _) in pairs.items()}


def _main(sockets: dict[str, socket.socket], tell: int) -> NoReturn:
    began = time.monotonic()
    try:
        threads = _import_torch()
    except BaseException as error:
        for control in sockets.values():
            _say(control, {"failed": _broken("torch", error)})
        os._exit(1)
    gc.collect()
    gc.freeze()  # no collection in a zygote then writes to the pages that they share
    role = next((role for role in ROLES[1:] if child_processes.fork() == 0), ROLES[0])
    control = sockets.pop(role)
    for other in sockets.values():
        other.close()
    try:
        _warm_up(role)
    except BaseException as error:
        _say(control, {"failed": _broken("triton", error)})
        os._exit(1)
    gc.collect()
    gc.freeze()  # what is warm stays shared with the children
    _say(control, {"ready": time.monotonic() - began})
    _serve(control, threads, tell)


def _broken(package: str, error: BaseException) -> dict[str, Any]:
    import traceback

    traceback.print_exception(error)
    detail = f"{type(error).__name__}: {error}".splitlines()[0]
    command = f"{sys.executable} -m pip install --force-reinstall {package}"
    return errors.PackageBroken(interpreter=sys.executable, package=package, detail=detail, command=command).to_json()


def _import_torch() -> int:
    """Import torch without touching the driver; the number of threads it would use."""
    # Otherwise torch.cuda.is_available() initialises the driver, and a fork after that cannot use CUDA.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # numpy's own BLAS serves the interpreter alone, in small products: its threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy  # noqa: F401
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    return threads


def _warm_up(role: str) -> None:
    if role == "unmarked":
        import kernel_lsp.worker.unmarked_process

        return
    if role == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported, which happens below
        with _gpus_counted_by_nvml_alone():
            from kernel_lsp.validation import interpreter
            from kernel_lsp.worker import validating

            interpreter.repair()
            validating.warm_up()
        return
    os.environ.pop("TRITON_INTERPRET", None)
    with _gpus_counted_by_nvml_alone(), tempfile.TemporaryDirectory() as folder:
        import kernel_lsp.slicing.subject  # noqa: F401
        from kernel_lsp.worker import specimen, validating, warming

        specimen.warm_up()
        validating.warm_up()
        warming.compile_once(folder)


@contextlib.contextmanager
def _gpus_counted_by_nvml_alone() -> Iterator[None]:
    """Within this context torch sees no GPU where NVML cannot count them.

    It would ask CUDA instead, and from then on refuse CUDA in what is forked, also where there is no driver: user code that asks
    for a GPU would be told "Cannot re-initialize CUDA in forked subprocess" in place of what is missing.
    """
    import torch

    if not torch.version.cuda or torch.cuda._device_count_nvml() >= 0:
        yield
        return
    name = "CUDA_VISIBLE_DEVICES"
    before = os.environ.get(name)
    os.environ[name] = ""
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        os._exit(0)  # the manager is gone


def _serve(control: socket.socket, threads: int, tell: int) -> NoReturn:
    children: dict[int, int] = {}  # pid → key
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    own = [control.fileno(), wake, waker, selector.fileno(), tell]  # type: ignore[attr-defined]
    while True:
        for key, _ in selector.select():
            if key.fd == wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            else:
                _obey(control, children, own, threads)
        _reap(control, children, tell)


def _obey(control: socket.socket, children: dict[int, int], own: list[int], threads: int) -> None:
    data, fds, _, _ = socket.recv_fds(control, 65536, 8)
    if not data:
        os._exit(0)
    message = json.loads(data)
    if "kill" in message:
        for pid, key in children.items():
            if key == message["kill"]:
                child_processes.kill_group(pid)
        return
    pid = child_processes.fork()
    if pid == 0:
        for fd in own:
            os.close(fd)
        _run(message["task"], fds, threads)
    for fd in fds:
        os.close(fd)
    children[pid] = message["start"]
    os.write(own[-1], keeper.BEGINS)
    _say(control, {"started": message["start"], "pid": pid})


def _reap(control: socket.socket, children: dict[int, int], tell: int) -> None:
    while children:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        if ended.si_pid in children:
            child_processes.kill_group(
                ended.si_pid
            )  # what it started and left in its group; the number is still its own
        pid, status = os.waitpid(ended.si_pid, 0)
        if pid in children:  # not so: another zygote, which is a child of this one
            os.write(tell, keeper.ENDS)
            _say(control, {"exited": children.pop(pid), "status": status})


def _run(task: str, fds: list[int], threads: int) -> NoReturn:
    """In the forked child: standard error to its pipe, then the task."""
    parameters, answers, stderr, *own = fds
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.close(stderr)
    from kernel_lsp.worker import tasks

    tasks.run(task, parameters, answers, threads, own)
    os._exit(0)

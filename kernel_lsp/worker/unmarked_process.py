"""An unmarked process: one that looks to a candidate like its user's own program, and not like a validation.

A candidate can find out that it is validated, be right there and wrong elsewhere: by modules that are imported, by
frames on its stack, by environment variables, by guards and poison in memory, by the mode that counts torch's operators,
by the name of its file. Here there is none of that, and the same calls have to give the same answers.

    manager ── keeper ── zygote "unmarked" (torch alone) ── task "unmarked" ── unmarked process, one for each question

The task waits for questions of the referee on a socket that the manager made for both; nothing that was imported
for a validation is in these processes. For each question it forks one that imports the user's module as the user, is
confined like a trial, takes kernel-lsp's modules out of ``sys.modules``, and then runs ``unmarked_program.py`` as ``__main__``.

So that no frame of ours is on its stack, it is forked by a thread that was started without one. The thread does three
things one after the other, which C code calls, not Python code: ``_begin`` (fork, and get ready), the program, ``_finish``
(say what came out). What the first and the last need is reachable from nowhere that Python code can look at.

It says ``{"ready": true}`` before the candidate's first line runs, or ``{"missing": why}``; then ``{}`` with the results, or
``{"failed": failure}``; and the task says ``{"ended": how}``. After the first none of that is believed (validation/calls_outside.py).

What tells all the same: that it is confined, that Triton is interpreted where there is no GPU, and what the methods of a class
of ours say of their file, which is found below ``Exception``.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import dataclasses
import functools
import gc
import importlib.machinery
import importlib.util
import linecache
import os
import select
import socket
import sys
import traceback
import types
import warnings
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import child_processes
from kernel_lsp.confinement import descriptors, entering, environment, layers
from kernel_lsp.specimen import examples, importing
from kernel_lsp.validation import channel, failures, interpreter
from kernel_lsp.worker import candidate_process, exit_reasons

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unmarked_program.py")
#: milliseconds between two looks whether the process has ended
_LOOK = 20
_HUNG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP


def serve(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """Answer the referee's questions, each with a process of its own, until it hangs up."""
    end = channel.Channel(socket.socket(fileno=given["sockets"][0]))
    while True:
        try:
            message, tree, _ = end.receive()
        except channel.Closed:
            return {}
        _answer(given, end, message, tree)
        tree = None


def _answer(given: dict[str, Any], end: channel.Channel, message: dict[str, Any], tree: Any) -> None:
    # Anew for each question: what a candidate leaves in its folder, a link for instance, is nothing to write through.
    folder = os.path.join(given["folder"], str(len(os.listdir(given["folder"]))))  # short: see environment.rename
    os.mkdir(folder, 0o700)
    given = {**given, "folder": folder}
    file = os.path.join(given["folder"], "main.py")
    with open(_PROGRAM, encoding="utf-8") as source:
        text = source.read()
    with open(file, "w", encoding="utf-8") as copied:
        copied.write(text)
    main = types.ModuleType("__main__")
    over = _thread.allocate_lock()
    over.acquire()
    steps = (
        functools.partial(_begin, given, end, message, tree, main, file, over),
        functools.partial(exec, compile(text, file, "exec"), vars(main)),
        functools.partial(_finish, end, main, message),
    )
    _thread.start_new_thread(list, (map(functools.partial.__call__, steps),))
    over.acquire()


def _begin(
    given: dict[str, Any],
    end: channel.Channel,
    message: dict[str, Any],
    tree: Any,
    main: types.ModuleType,
    file: str,
    over: Any,
) -> None:
    """In the thread: fork, and end with the child. In the child: all that comes before the candidate's first line."""
    before = exit_reasons.for_want_of_memory()
    pid = -1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the other thread waits for this one
            pid = child_processes.fork()
        if pid:
            _wait(given, end, pid, before)
            raise SystemExit  # which ends a thread without a word
    finally:
        if pid:
            over.release()
    try:
        os.environ.pop("TRITON_INTERPRET", None)
        descriptors.keep_only(end.socket.fileno())
        main.options = _ready(given, end, message, tree)  # type: ignore[attr-defined]
        _hide(main, file)
        end.send({"ready": True})
        gc.collect()
        gc.freeze()  # gc.get_objects() leaves out what is frozen
    except BaseException as error:
        traceback.print_exc()
        with contextlib.suppress(channel.Closed):
            end.send({"missing": failures.sentence(error)})
        os._exit(1)


def _wait(given: dict[str, Any], end: channel.Channel, pid: int, before: int) -> None:
    """Until the process has ended, by itself or since the referee hung up; say how."""
    poll = select.poll()
    poll.register(end.socket, _HUNG_UP)
    how = os.WEXITED | os.WNOWAIT
    while os.waitid(os.P_PID, pid, how | os.WNOHANG) is None:
        if any(events & _HUNG_UP for _, events in poll.poll(_LOOK)):
            child_processes.kill_group(pid)
            os.waitid(os.P_PID, pid, how)
    child_processes.kill_group(pid)  # what it started; the number is still its own
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(channel.Closed):
        end.send({"ended": exit_reasons.describe(status, pid, given["scratch"], before)})


#: held until the process ends: what it stands for would be put back otherwise
_held = contextlib.ExitStack()


def _ready(given: dict[str, Any], end: channel.Channel, message: dict[str, Any], tree: Any) -> dict[str, Any]:
    """Import the user's module as the user, be confined, start CUDA; what the program is given."""
    path, class_name, device = given["path"], given["class_name"], given["device"]
    found = layers.from_json(given.get("layers"))
    entering.begin(found, given.get("sharing") or entering.SHARING[0])
    if device == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported, as its user would set it
        interpreter.repair()
        _held.enter_context(interpreter.answering_as_cuda())
        if message.get("words"):
            _held.enter_context(interpreter.on_the_cpu())
    else:
        candidate_process.load_helpers()
    # Read by what the user's module imports now, and gone afterwards: no network, no pool of processes.
    os.environ |= {"HF_HUB_OFFLINE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    user_module, cls = importing.load(path, class_name)
    arguments = examples.constructor(user_module, cls, path, class_name, given.get("inputs"))
    bounds = candidate_process.bounds(given, given["folder"], given["folder"])
    bounds = dataclasses.replace(bounds, unmarked=True, stands=os.path.dirname(os.path.abspath(path)))
    entering.enter(bounds, found, [end.socket.fileno()])
    where = torch.device("cpu" if device == "interpreter" else device)
    if where.type == "cuda":
        _cache_in(given["folder"])
        candidate_process.begin_cuda(where)
        entering.refuse_calls(bounds, found)
    torch.set_num_threads(given["threads"])
    state, restored, inputs = pytree.tree_map(lambda value: _own(value, where), tree)
    name, folder = message["name"], os.path.dirname(message["path"])
    _make_package(name.rpartition(".")[0], folder)
    return {
        "name": name,
        "path": message["path"],
        "text": message["text"],
        "class": message["class"],
        "arguments": arguments,
        "device": str(where),
        "dtype": examples.converted(given),
        "training": bool(given.get("training")),
        "state": state,
        "restored": restored,
        "inputs": [(tuple(args), kwargs) for args, kwargs in inputs],
        "seed": message["seed"],
        "seconds": message["seconds"],
    }


def _cache_in(folder: str) -> None:
    """Triton's cache, where this process may write; not by a variable, which setting the knob would set as well."""
    import triton

    vars(triton.knobs.cache)["dir"] = os.path.join(folder, "cache")


def _own(value: Any, where: torch.device) -> Any:
    """A tensor in memory of torch's own, as large as its elements need."""
    if not isinstance(value, torch.Tensor):
        return value
    moved = channel.moved(value, where)
    return moved.clone() if moved is value else moved


def _make_package(name: str, folder: str) -> None:
    """The folder of kernel files as the package that an import statement would have made of it."""
    if not name or name in sys.modules:
        return
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _hide(main: types.ModuleType, file: str) -> None:
    """Nothing of ours where a program looks, and ``main`` as what was started."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in [name for name in sys.modules if name.partition(".")[0] == "kernel_lsp"]:
        for kind in vars(sys.modules.pop(name)).values():
            if isinstance(kind, type) and kind.__module__.startswith("kernel_lsp."):
                kind.__module__ = main.__name__  # Exception and others list the classes below them
    for cache in (sys.path_importer_cache, linecache.cache):
        for key in [key for key in cache if str(key).startswith(ours)]:
            del cache[key]  # type: ignore[attr-defined]
    main.__file__ = file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    sys.modules["__main__"] = main
    sys.argv[:] = [file]
    sys.orig_argv[:] = [sys.executable, file]
    environment.rename([sys.executable, file])
    sys.stdout = sys.__stdout__


def _finish(end: channel.Channel, main: types.ModuleType, message: dict[str, Any]) -> None:
    """Say what came out, and end."""
    try:
        _say(end, vars(main), message)
    except channel.Closed:
        pass
    except BaseException as error:
        traceback.print_exc()
        with contextlib.suppress(BaseException):
            end.send({"failed": failures.Failure("crashed", failures.sentence(error)).to_json()})
    finally:
        os._exit(0)


def _say(end: channel.Channel, found: dict[str, Any], message: dict[str, Any]) -> None:
    error = found["error"]
    if error is not None:
        traceback.print_exception(error)
        end.send({"failed": failures.classify(error, message["path"], message["text"]).to_json()})
        return
    try:
        end.send({}, [[channel.plain(output), args, kwargs] for output, args, kwargs in found["results"]])
    except channel.Opaque as opaque:
        end.send({"failed": failures.Failure("wrong", f"it returns a {opaque}, not tensors").to_json()})

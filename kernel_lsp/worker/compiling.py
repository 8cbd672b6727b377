"""What the compiler makes of a candidate for a GPU that is not here, in a confined process of its own.

The candidate runs there, so what comes from it is looked at like any candidate's answer: it is of a known form and
size, or it counts for nothing; and none at all, or an empty one, is no success.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import child_processes, errors, schema
from kernel_lsp.confinement import descriptors, entering, layers, rlimits
from kernel_lsp.specimen import examples, faking, importing, looking
from kernel_lsp.validation import answers, memory
from kernel_lsp.worker import candidate_process, exit_reasons, validating

#: seconds for importing the module and for the compiler, which stops after 40 by itself
SECONDS = 55.0
#: bytes of a report
_LARGEST = 1 << 20
#: seconds between two looks at the memory that the process takes
_LOOK_SECONDS = 0.2
_OUT_OF_TIME = "stopped, since the time was over"
_BEGINS = b"!"  # said before the candidate's first line runs


def report(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"kernels": [CompiledKernel], "error": {"reason", "line"} | None, "limits": [str]}`` for a candidate.

    Slowness is no error: it says nothing of whether the kernels compile.

    Raises:
        WorkerDied: the user's own module cannot be imported here.
    """
    if validating.rejected_by_its_text(given, given["source"]):
        return {"kernels": [], "error": None, "limits": []}
    kernel_class = validating.kernel_class_of(given)
    source = validating.written(given["source"], os.path.join(given["scratch"], "compile", "source"), kernel_class)
    folder = os.path.join(given["scratch"], "compile", "own")
    os.makedirs(folder, exist_ok=True)
    reading, writing = os.pipe()
    before = exit_reasons.for_want_of_memory()
    pid = child_processes.fork()
    if pid == 0:
        try:
            descriptors.keep_only(writing)
            _compile(given, source, kernel_class, folder, writing)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    try:
        said, stopped = _hear(reading, pid, time.monotonic() + SECONDS)
    finally:
        os.close(reading)
        child_processes.kill_group(pid)
        _, status = os.waitpid(pid, 0)
    how = stopped or exit_reasons.describe(status, pid, given["scratch"], before)
    if stopped == _OUT_OF_TIME:
        late = schema.NOT_COMPILED + schema.COMPILING_STOPPED.format(seconds=SECONDS)
        return {"kernels": [], "error": None, "limits": [late]}
    if not said.startswith(_BEGINS):
        raise errors.WorkerDied(detail=f"{how} while importing the module for the compiler")
    found = _checked(said[len(_BEGINS) :])
    if found is None:
        return _failed(f"the process that compiles it gave no report: {how}")
    if not (found["kernels"] or found["error"] or found["limits"]):
        return _failed("it launches nothing where it is compiled for a GPU")
    return found


def _failed(reason: str) -> dict[str, Any]:
    return {"kernels": [], "error": {"reason": reason, "line": None}, "limits": []}


def _hear(reading: int, pid: int, until: float) -> tuple[bytes, str]:
    """(what the process said until it closed the pipe, why it was stopped if it was)."""
    said = b""
    most = max(rlimits.MEMORY, memory.free([]) // 2 if sys.platform == "linux" else rlimits.MEMORY)
    while True:
        left = until - time.monotonic()
        ready, _, _ = select.select([reading], [], [], max(0.0, min(left, _LOOK_SECONDS)))
        if ready:
            data = os.read(reading, 1 << 16)
            said += data
            if not data:
                return said, ""
        if left <= 0:
            return said[:1], _OUT_OF_TIME
        if len(said) > _LARGEST:
            return said[:1], "stopped, since it said too much"
        if child_processes.resident(pid) > most:
            return said[:1], f"stopped at {most >> 30} GB of memory"


def _checked(said: bytes) -> dict[str, Any] | None:
    """The report, if it is one."""
    try:
        return answers.compiled(json.loads(said))
    except (ValueError, RecursionError):
        return None


def _compile(given: dict[str, Any], source: str, kernel_class: str, folder: str, writing: int) -> None:
    """In the process of its own: import the module as the user, then be confined and let the candidate run."""
    from kernel_lsp.validation import compilation

    found = layers.from_json(given.get("layers"))
    entering.begin(found)
    user_module, cls = importing.load(given["path"], given["class_name"])
    mode, training, dtype = faking.mode(), bool(given.get("training")), examples.converted(given)
    bounds = candidate_process.bounds({**given, "device": "interpreter"}, folder, os.path.dirname(source))
    # Not by its address space: tensors of the example's full size are made, and never touched.
    mine = entering.Bounds(folder, bounds.reads, compiles=True, bounded=False, memory_files=False)
    entering.enter(mine, found, [writing])
    torch.set_num_threads(given["threads"])
    _write(writing, _BEGINS)

    def hollow() -> Any:
        example = looking.example_of(given, user_module, cls, mode)
        args, kwargs = pytree.tree_map(faking.hollow, (example.args, example.kwargs))

        def make(kind: type) -> torch.nn.Module:
            with faking.within(mode):
                instance = kind(*example.init_args, **example.init_kwargs).to(dtype).train(training)
            return faking.hollowed(instance)

        return make, args, kwargs

    def real() -> Any:
        example = looking.example_of(given, user_module, cls, None)
        return (
            lambda kind: kind(*example.init_args, **example.init_kwargs).to(dtype).train(training),
            example.args,
            example.kwargs,
        )

    made = compilation.report(source, kernel_class, given["source"], [hollow, real], folder)
    _write(writing, json.dumps(made).encode())


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]

"""What the GPU's driver needs to share memory between two processes, found out by doing it, once for a device.

CUDA's interprocess handles work between processes that nothing keeps apart; which parts of the confinement they bear
depends on the driver, and whether the C compiler runs behind it depends on where it is installed. A confined process
compiles and launches a kernel, opens memory that this one lends, and writes to it.
"""

from __future__ import annotations

import json
import os
import select
import time
import traceback
from typing import Any

from kernel_lsp import child_processes
from kernel_lsp.confinement import descriptors, entering, layers
from kernel_lsp.worker import candidate_process, gpu_lock, warming

#: seconds for the confined process to start CUDA and open the memory
_SECONDS = 20.0
_COUNT, _WRITTEN = 1024, 7
_STARTED, _WROTE = b"s", b"w"


def find(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"sharing": one of entering.SHARING}``: the least that has to be open. The closest where the device lends nothing.

    Raises:
        GpuTaken: others timed on the device for too long.
    """
    found = layers.from_json(given.get("layers"))
    borrowers = []
    for sharing in entering.SHARING:  # all before this process starts CUDA, which forbids a fork
        borrowers.append((sharing, *_fork({**given, "sharing": sharing}, found)))
    import torch

    from kernel_lsp.validation.device_memory import Block, Unsupported

    answer, started = entering.SHARING[0], False
    try:
        device = torch.device(given["device"])
        torch.cuda.init()
        gpu_lock.begin(given.get("locks"), device, emit)  # no process times meanwhile
        torch.cuda.set_device(device)
        for sharing, _, ask, told in borrowers:
            block = Block(_COUNT, device)
            os.write(ask, json.dumps(block.key).encode())
            said = _hear(told)
            if said == _STARTED + _WROTE and int(block.data[0]) == _WRITTEN:
                answer = sharing
                break
            if said == _STARTED and not started:  # CUDA runs with no more than this, if nothing can be shared
                started, answer = True, sharing
    except (Unsupported, RuntimeError):
        traceback.print_exc()
    finally:
        for _, pid, _, _ in borrowers:
            child_processes.kill_group(pid)
            os.waitpid(pid, 0)
    return {"sharing": answer}


def _hear(told: int) -> bytes:
    """What a confined process says until it has done all, or ends."""
    said, until = b"", time.monotonic() + _SECONDS
    while said != _STARTED + _WROTE:
        ready, _, _ = select.select([told], [], [], max(0.0, until - time.monotonic()))
        data = os.read(told, 1) if ready else b""
        if not data:
            break
        said += data
    return said


def _fork(given: dict[str, Any], found: layers.Layers) -> tuple[int, int, int]:
    """(process id, descriptor to ask by, descriptor that tells) of a process that waits to be lent memory."""
    asked, ask = os.pipe()
    told, tell = os.pipe()
    pid = child_processes.fork()
    if pid == 0:
        try:
            descriptors.keep_only(asked, tell)
            _borrow(given, found, asked, tell)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(asked)
    os.close(tell)
    return pid, ask, told


def _borrow(given: dict[str, Any], found: layers.Layers, asked: int, tell: int) -> None:
    key = os.read(asked, 4096)
    if not key:  # not needed: a closer one works
        return
    import torch

    from kernel_lsp.validation.device_memory import Lent

    folder = os.path.join(given["scratch"], "lending")
    os.makedirs(folder, exist_ok=True)
    entering.begin(found, given["sharing"])
    candidate_process.load_helpers()
    mine = candidate_process.bounds(given, folder, folder)
    entering.enter(mine, found, [asked, tell])
    device = torch.device(given["device"])
    candidate_process.begin_cuda(device)
    entering.refuse_calls(mine, found)
    warming.launch_once(device)
    os.write(tell, _STARTED)
    lent = Lent(json.loads(key), None, device)
    lent.data.fill_(_WRITTEN)
    torch.cuda.synchronize()
    os.write(tell, _WROTE)
    lent.close()

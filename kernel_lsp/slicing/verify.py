"""Run a slice where nothing of the workspace was ever imported, and compare what it is with the real module.

The process for it is forked before the user's module is imported: a slice that is not self-contained fails there,
and what may be registered only once (an operator, a name in a registry) is registered afresh.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import shutil
import sys
import tempfile
import traceback
from typing import Any, NoReturn

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import child_processes
from kernel_lsp.specimen import examples, faking, faults
from kernel_lsp.validation import channel

#: seconds for one slice
SECONDS = 60.0
_NAME = "subject"


class Nursery:
    """A process that has imported torch and nothing of the user's, and forks one child for each slice to run."""

    def __init__(self, close: list[int], scratch: str | None = None) -> None:
        """Call it before the user's module is imported and before torch runs in parallel.

        ``close``: descriptors that are not for it; ``scratch``: a folder for its files.
        """
        self.folder = tempfile.mkdtemp(prefix="slice-", dir=scratch)
        self.stuck = False
        mine, theirs = os.pipe(), os.pipe()
        self.pid = child_processes.fork()
        if self.pid == 0:
            for fd in [*close, mine[1], theirs[0]]:
                with contextlib.suppress(OSError):
                    os.close(fd)
            _serve(mine[0], theirs[1])
        os.close(mine[0])
        os.close(theirs[1])
        self._requests, self._answers = mine[1], theirs[0]

    def run(self, source: str, *, root: str | None, state: Any = None, call: Any = None) -> dict[str, Any]:
        """What the slice is: ``{"state", "inputs", "outputs", "file"}`` or ``{"error", "line"}``.

        ``state``: [name, shape, dtype] of each entry of its state_dict. ``inputs``, ``outputs``: [shape, dtype] of each
        tensor of ``get_inputs()`` and of what forward makes of them as fake tensors (None: it cannot). With ``state``
        and ``call`` = (args, kwargs), the outputs for these are saved in ``file``. ``root`` goes on ``sys.path``.
        """
        path = os.path.join(self.folder, f"{_NAME}.py")
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(source)
        given = None
        if call is not None:
            given = os.path.join(self.folder, "given.pt")
            torch.save((state, call), given)
        # As many threads as here: how a sum is split among them shows in its last bits.
        os.write(
            self._requests,
            json.dumps({"path": path, "root": root, "given": given, "threads": torch.get_num_threads()}).encode()
            + b"\n",
        )
        data = b""
        while not data.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], SECONDS)
            more = os.read(self._answers, 1 << 16) if ready else b""
            self.stuck = not ready
            if not more:
                return {"error": f"it did not end within {SECONDS:.0f} s" if not ready else "it crashed", "line": None}
            data += more
        return json.loads(data)

    def close(self) -> None:
        """End the process with its children, and remove its folder."""
        os.close(self._requests)
        os.close(self._answers)
        child_processes.kill_group(self.pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.folder, ignore_errors=True)


def _serve(requests: int, answers: int) -> NoReturn:
    with os.fdopen(requests, "rb") as file:
        for line in file:
            pid = child_processes.fork()
            if pid == 0:
                os.write(answers, json.dumps(_look(json.loads(line))).encode() + b"\n")
                sys.stderr.flush()
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            if status:
                error = {"error": f"it was {child_processes.describe(status)}", "line": None}
                os.write(answers, json.dumps(error).encode() + b"\n")
    os._exit(0)


def _look(given: dict[str, Any]) -> dict[str, Any]:
    path = given["path"]
    torch.set_num_threads(given["threads"])
    try:
        return _described(path, given["root"], given["given"])
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return {"error": faults.sentence(error), "line": faults.line_in(path, error)}


def _described(path: str, root: str | None, given: str | None) -> dict[str, Any]:
    if root:
        sys.path.insert(0, root)
    spec = importlib.util.spec_from_file_location(_NAME, path)
    assert spec is not None and spec.loader is not None
    subject = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = subject
    spec.loader.exec_module(subject)
    examples.seed_all(0)
    init_args, init_kwargs = examples.split(subject.get_init_inputs())
    examples.seed_all(0)
    model = subject.Model(*init_args, **init_kwargs).eval().cpu()
    args, kwargs = examples.split(subject.get_inputs())
    faked = faking.run(model, args, kwargs)
    result: dict[str, Any] = {
        "state": [[name, *described(tensor)] for name, tensor in model.state_dict().items()],
        "inputs": all_described((args, kwargs)),
        "outputs": None if faked is None else all_described(channel.plain(faked[0])),
        "file": None,
    }
    if given is not None:
        state, (args, kwargs) = torch.load(given, weights_only=False)
        model.load_state_dict(state)
        examples.seed_all(1)
        with torch.no_grad():
            outputs = model(*args, **kwargs)
        result["file"] = f"{given}.out"
        torch.save(
            [t for t in pytree.tree_leaves(channel.plain(outputs)) if isinstance(t, torch.Tensor)], f"{given}.out"
        )
    return result


def described(tensor: torch.Tensor) -> list[Any]:
    """A tensor as data to compare by: its shape and its dtype, such as ``float32``."""
    return [[int(n) for n in tensor.shape], str(tensor.dtype).removeprefix("torch.")]


def all_described(tree: Any) -> list[list[Any]]:
    """Shape and dtype of each tensor in a tree, in the order of its leaves."""
    return [described(t) for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]

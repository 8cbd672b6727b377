"""Between referee and trial: messages of JSON and raw tensor bytes, in memory files passed over a socket.

Nothing is ever unpickled or mapped from the other side: sizes are checked against the file and bytes are copied out
before they are looked at, so that a lying trial can only be wrong, not harmful.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import socket
import stat
import sys
import time
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

_SCALARS = (bool, int, float, str, type(None))
#: bytes of a message without its tensors
_LONGEST = 1 << 26


class Opaque(TypeError):
    """A value that cannot be handed to another process; the argument is the name of its type."""


class Closed(Exception):
    """The other side is gone."""


class TooLate(Exception):
    """No message came in time."""


def plain(tree: Any) -> Any:
    """A result with tuples, lists and dicts only: an object of another type becomes ``{its name: its parts}``.

    Dataclasses, named tuples, ModelOutput and what else pytree knows; the rest stays as it is. Of a dataclass that is a dict as well, as
    ModelOutput is, the parts are its entries, and beside them what fields hold that no entry of their name does.
    """
    kind = type(tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        held = {f.name: getattr(tree, f.name) for f in dataclasses.fields(tree) if hasattr(tree, f.name)}
        if not isinstance(tree, dict):
            return {_name(kind): {name: plain(value) for name, value in held.items()}}
        parts = {k: plain(v) for k, v in dict.items(tree)}
        others = {k: plain(v) for k, v in held.items() if v is not dict.get(tree, k)}
        return {_name(kind): parts, **({f"fields of {_name(kind)}": others} if others else {})}
    if isinstance(tree, dict):
        parts = {k: plain(v) for k, v in tree.items()}
        return parts if kind is dict else {_name(kind): parts}
    if isinstance(tree, (list, tuple)):
        children = [plain(v) for v in tree]
        if kind is list:
            return children
        return tuple(children) if kind in (tuple, torch.Size) else {_name(kind): children}
    leaves = pytree.tree_leaves(tree)
    if len(leaves) == 1 and leaves[0] is tree:
        return tree
    return {_name(kind): [plain(v) for v in leaves]}


def _name(kind: type) -> str:
    """A type by its module and its name there; marked where that module has something else under that name.

    A kernel file may define a class of its own that is called as the module's result is.
    """
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return f"{kind.__module__}.{kind.__qualname__}{'' if found is kind else ' (not at that place)'}"


def describe(tree: Any, tensors: list[torch.Tensor]) -> Any:
    """``tree`` as JSON with its tensors left out and appended to ``tensors``.

    Raises:
        Opaque: a leaf cannot be handed to another process.
    """
    if isinstance(tree, torch.Tensor):
        tensors.append(tree.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(tree, _SCALARS):
        return {"value": repr(tree) if isinstance(tree, float) else tree, "float": isinstance(tree, float)}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [describe(t, tensors) for t in tree]}
    if type(tree) is dict:
        return {"dict": [[describe(k, tensors), describe(v, tensors)] for k, v in tree.items()]}
    if isinstance(tree, (torch.dtype, torch.device)):
        return {"torch": str(tree)}
    leaves = pytree.tree_leaves(tree)
    if len(leaves) == 1 and leaves[0] is tree:
        raise Opaque(type(tree).__name__)
    # Structured results (named tuples, ModelOutput): compared by the name of their type, not rebuilt.
    return {"node": type(tree).__name__, "children": [describe(t, tensors) for t in leaves]}


def not_rebuilt(described: Any) -> str | None:
    """The type of the first object that ``rebuild`` makes a list of, and that is more than a tuple; None where there is none."""
    if isinstance(described, list):
        return next((kind for one in described if (kind := not_rebuilt(one)) is not None), None)
    if not isinstance(described, dict):
        return None
    if "node" in described and described["node"] != torch.Size.__name__:
        return str(described["node"])
    return not_rebuilt(list(described.values()))


def rebuild(described: Any, tensors: list[torch.Tensor]) -> Any:
    """The tree that ``describe`` saw; nodes of other types become lists of their leaves.

    Raises:
        ValueError: it is none that ``describe`` gives.
    """
    if not isinstance(described, dict):
        raise ValueError("a description that is none")
    if "tensor" in described:
        return tensors[described["tensor"]]
    if "value" in described:
        value = described["value"]
        if not isinstance(value, _SCALARS):
            raise ValueError("a value of no known kind")
        return float(str(value)) if described["float"] else value
    if "list" in described:
        return [rebuild(d, tensors) for d in described["list"]]
    if "tuple" in described:
        return tuple(rebuild(d, tensors) for d in described["tuple"])
    if "dict" in described:
        return {rebuild(k, tensors): rebuild(v, tensors) for k, v in described["dict"]}
    if "torch" in described:
        kind, _, rest = str(described["torch"]).partition(".")
        found = getattr(torch, rest, None) if kind == "torch" else torch.device(described["torch"])
        if not isinstance(found, torch.dtype | torch.device):
            raise ValueError("neither a dtype nor a device")
        return found
    return [rebuild(d, tensors) for d in described["children"]]


def sizes(value: Any) -> list[int]:
    """A shape that was sent.

    Raises:
        ValueError: it is none that a tensor can have.
    """
    if not isinstance(value, list) or len(value) > 64 or any(type(n) is not int for n in value):
        raise ValueError("a shape that is none")
    count = 1
    for n in value:
        count *= max(n, 1)
    if any(n < 0 for n in value) or count >= 1 << 48:
        raise ValueError("a shape that no tensor has")
    return value


def raw_bytes(tensor: torch.Tensor) -> numpy.ndarray:
    """The elements in logical order as bytes, uint8 [bytes] on the host; an expanded dimension (stride 0) only once."""
    once = tensor
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            once = once.narrow(dim, 0, 1)
    flat = once.cpu().contiguous().reshape(-1)
    flat = flat.as_strided(flat.shape, (1,))  # one element that was expanded still has stride 0
    return flat.view(torch.uint8).numpy() if flat.numel() else numpy.empty(0, numpy.uint8)


def from_raw(data: numpy.ndarray, dtype: torch.dtype, shape: list[int], stride: list[int]) -> torch.Tensor:
    """The CPU tensor of ``shape`` and ``stride`` whose elements ``raw_bytes`` gave.

    Raises:
        ValueError: the bytes are not as many as the elements need.
    """
    once = [1 if s == 0 else n for n, s in zip(shape, stride, strict=True)]
    count = 1
    for n in once:
        count *= n
    if count * dtype.itemsize != data.nbytes:
        raise ValueError(f"{data.nbytes} bytes for {count} elements of {dtype}")
    flat = torch.from_numpy(data).view(dtype) if count else torch.empty(0, dtype=dtype)
    if not shape:
        return flat.reshape(())
    logical = flat.reshape(once)
    if list(logical.stride()) == list(stride):
        return logical.expand(shape)
    # The reach of a hostile stride is bounded by what the data could fill a few times over.
    reach = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, stride, strict=True)) if 0 not in shape else 0
    if reach > 64 * max(count, 1) + 4096 or any(s < 0 for s in stride):
        return logical.expand(shape)
    strided = torch.empty_strided(once, stride, dtype=dtype)
    strided.copy_(logical)
    return strided.expand(shape)


def moved(value: Any, device: torch.device) -> Any:
    """A tensor on ``device`` with the strides it has here (``.to`` makes rows with gaps contiguous); others as they are."""
    if not isinstance(value, torch.Tensor) or value.device == device:
        return value
    if value.is_contiguous() or 0 in value.stride():
        return value.to(device)
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device).copy_(value)


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.file: int | None = None  # that came with the last message; the receiver's to close

    def send(self, message: dict[str, Any], tree: Any = None, file: int | None = None) -> None:
        """Send ``message``, a tree of tensors, and a descriptor.

        Raises:
            Opaque: a leaf of the tree cannot be handed to another process.
            Closed: the other side is gone.
        """
        tensors: list[torch.Tensor] = []
        described = describe(tree, tensors)
        # Tensors on a GPU are copied first: their bytes are then written straight from the copies.
        blocks = [raw_bytes(t) for t in tensors]
        metas = [
            {
                "dtype": str(t.dtype).removeprefix("torch."),
                "shape": list(t.shape),
                "stride": list(t.stride()),
                "device": t.device.type,
                "bytes": block.nbytes,
            }
            for t, block in zip(tensors, blocks, strict=True)
        ]
        head = json.dumps({"message": message, "tree": described, "tensors": metas}).encode()
        fd = os.memfd_create("message")
        try:
            _write(fd, len(head).to_bytes(8, "little"))
            _write(fd, head)
            for block in blocks:
                _write(fd, block.data)
            socket.send_fds(self.socket, [b"m"], [fd] if file is None else [fd, file])
        except OSError as error:
            raise Closed(str(error)) from None
        finally:
            os.close(fd)

    def receive(
        self, seconds: float | None = None, room: int | None = None
    ) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
        """(message, tree, what was said of each tensor); a descriptor that came along is ``file``.

        ``room``: bytes of tensors that may come, any number if None.

        Raises:
            TooLate: no message came in time.
            Closed: the other side is gone.
            ValueError: the message is malformed.
        """
        fd = self._next_file(seconds)
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise ValueError("a message that is no file")  # reading a pipe could wait for ever
            size = about.st_size
            os.lseek(fd, 0, os.SEEK_SET)
            length = int.from_bytes(_read(fd, 8), "little")
            if length > min(size, _LONGEST) or (room is not None and size > _LONGEST + room):
                raise ValueError("a message longer than it may be")
            head = json.loads(bytes(_read(fd, length)))
            tensors = []
            for meta in head["tensors"]:
                dtype = getattr(torch, str(meta["dtype"]), None)
                count = int(meta["bytes"])
                if not isinstance(dtype, torch.dtype) or not 0 <= count <= size:
                    raise ValueError(f"a tensor of {meta['dtype']} with {count} bytes")
                tensors.append(from_raw(_read(fd, count), dtype, sizes(meta["shape"]), meta["stride"]))
            message = head["message"]
            if not isinstance(message, dict):
                raise ValueError("a message that is none")
            return message, rebuild(head["tree"], tensors), head["tensors"]
        except (KeyError, TypeError, RuntimeError, IndexError, AttributeError, MemoryError) as error:
            raise ValueError(str(error)) from None
        finally:
            os.close(fd)

    def _next_file(self, seconds: float | None) -> int:
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self.socket], [], [], left)
            if not ready or left == 0:  # also where bytes without a file never end
                raise TooLate
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, 1, 2)
            except OSError as error:
                raise Closed(str(error)) from None
            if not data:
                raise Closed("end of file")
            if fds:
                self.file = fds[1] if len(fds) > 1 else None
                return fds[0]


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets of this machine, one for each process."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def _write(fd: int, data: Any) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(fd, view[: 1 << 30]) :]


def _read(fd: int, count: int) -> numpy.ndarray:
    block = numpy.empty(count, numpy.uint8)
    view = block.data
    while view:
        got = os.readv(fd, [view[: 1 << 30]])
        if got == 0:
            raise ValueError("a file shorter than it says")
        view = view[got:]
    return block

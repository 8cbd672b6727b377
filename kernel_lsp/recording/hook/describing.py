"""A call's arguments as plain data: shapes, dtypes, memory order and flags; never the values of a tensor.

One argument is ``{"tensor": "float32[8, 512]", …}``, ``{"value": 0.5}``, ``{"list": […]}``, ``{"tuple": […]}``, ``{"dict": {…}}``
or ``{"other": "package.Class"}`` for what an example cannot be made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_LEAVES = 64  # of one call
MOST_DEPTH = 4
MOST_TEXT = 80  # characters of a string
MOST_BOUNDED = 1 << 22  # elements of an integer tensor whose greatest value is looked for


class Varying(Exception):
    """The call is no call of the program's own: it is being traced."""


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What tells one kind of call from another: all but numbers.

    Raises:
        Varying: the call is being traced.
    """
    room = [MOST_LEAVES]
    keys: list[Any] = [_key(value, 0, room) for value in args]
    keys += [(name, _key(value, 0, room)) for name, value in kwargs.items()]
    return tuple(keys)


def _key(value: Any, depth: int, room: list[int]) -> Any:
    import torch

    room[0] -= 1
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.shape, _memory_order(value), value.device, value.requires_grad)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:MOST_TEXT]
    kind = type(value)
    if kind in (int, float):
        return kind
    if depth < MOST_DEPTH and room[0] > 0:
        if kind is list or kind is tuple:
            return (kind, *(_key(item, depth + 1, room) for item in value[:MOST_LEAVES]))
        if kind is dict:
            first = list(value.items())[:MOST_LEAVES]
            return (kind, *((str(name), _key(item, depth + 1, room)) for name, item in first))
    if kind.__name__ == "Proxy":  # torch.fx
        raise Varying
    return kind


def describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """``{"args": […], "kwargs": {…}}`` of one call. Looks for the greatest of integers, which may wait for a GPU."""
    room = [MOST_LEAVES]
    return {
        "args": [_described(value, 0, room) for value in args],
        "kwargs": {name: _described(value, 0, room) for name, value in kwargs.items()},
    }


def _described(value: Any, depth: int, room: list[int]) -> dict[str, Any]:
    import torch

    room[0] -= 1
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if value is None or type(value) in (bool, int, float):
        return {"value": value}
    if type(value) is str and len(value) <= MOST_TEXT:
        return {"value": value}
    if depth < MOST_DEPTH and room[0] > 0 and len_of(value) <= MOST_LEAVES:
        if type(value) in (list, tuple):
            return {type(value).__name__: [_described(item, depth + 1, room) for item in value]}
        if type(value) is dict and all(isinstance(name, str) for name in value):
            return {"dict": {name: _described(item, depth + 1, room) for name, item in value.items()}}
    return {"other": f"{type(value).__module__}.{type(value).__qualname__}"}


def len_of(value: Any) -> int:
    """Elements of a list, tuple or dict; 0 for anything else, also for classes derived from these."""
    return len(value) if type(value) in (list, tuple, dict) else 0


def numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, int | float]]:
    """The plain numbers among the arguments themselves, by position or name."""
    for i, value in enumerate(args):
        if type(value) in (int, float):
            yield str(i), value
    for name, value in kwargs.items():
        if type(value) in (int, float):
            yield name, value


def _tensor(tensor: Any) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    found: dict[str, Any] = {
        "tensor": f"{dtype}[{', '.join(str(int(n)) for n in tensor.shape)}]",
        "device": tensor.device.type,
        "order": _memory_order(tensor),
    }
    if found["order"] not in ("contiguous", "other"):
        found["stride"] = [int(n) for n in tensor.stride()]
    if tensor.requires_grad:
        found["grad"] = True
    below = _below(tensor)
    if below is not None:
        found["below"] = below
    return found


def _memory_order(tensor: Any) -> str:
    """``contiguous``, ``channels_last``, ``expanded``, ``transposed`` (dense in another order), ``strided``, ``other``."""
    import torch

    if tensor.layout is not torch.strided:
        return "other"
    if tensor.is_contiguous():
        return "contiguous"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    pairs = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1)
    if pairs and pairs[0][0] == 0:
        return "expanded"
    step = 1
    for stride, size in pairs:
        if stride != step:
            return "strided"
        step *= size
    return "transposed"


def _below(tensor: Any) -> int | None:
    """One more than the greatest integer in a tensor that holds no negative ones; None where that is not known."""
    import torch

    if tensor.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        return None
    if not 0 < tensor.numel() <= MOST_BOUNDED or tensor.device.type not in ("cpu", "cuda"):
        return None
    with torch.no_grad():
        low, high = torch.aminmax(tensor.detach())
        return int(high) + 1 if int(low) >= 0 else None

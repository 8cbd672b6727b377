"""Example inputs from calls that ``kernel-lsp record`` saw: tensors of the same shapes, dtypes and strides, other values."""

from __future__ import annotations

from typing import Any

import torch


def constructor(table: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of the recorded constructor."""
    return made(table["init"])


def forward(table: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """(args, kwargs, where they come from) of the recorded call."""
    args, kwargs = made(table)
    return args, kwargs, f"recorded from {table['from']}"


def made(call: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of a described call, with random values.

    Raises:
        ValueError: one cannot be made.
    """
    return tuple(value(item) for item in call["args"]), {name: value(item) for name, item in call["kwargs"].items()}


def value(described: dict[str, Any]) -> Any:
    """An argument from its description (recording/hook/describing.py).

    Raises:
        ValueError: none can be made.
    """
    if "tensor" in described:
        return tensor(described)
    if "list" in described:
        return [value(item) for item in described["list"]]
    if "tuple" in described:
        return tuple(value(item) for item in described["tuple"])
    if "dict" in described:
        return {name: value(item) for name, item in described["dict"].items()}
    if "value" in described:
        return described["value"]
    raise ValueError(f"a recorded argument is a {described.get('other', 'thing')}, which cannot be made again")


def tensor(described: dict[str, Any]) -> torch.Tensor:
    """Random numbers of the recorded shape, dtype and memory order, on the current device.

    Integers are below the recorded bound, 2 where none is; booleans are true half of the time.
    """
    name, _, sizes = described["tensor"].rstrip("]").partition("[")
    dtype = getattr(torch, name)
    shape = [int(n) for n in sizes.split(",") if n.strip()]
    stride = described.get("stride")
    if stride is None:
        return _filled(shape, dtype, described.get("below"))
    # Dimensions of stride 0 are one element, seen again and again.
    base = [1 if step == 0 else n for n, step in zip(shape, stride, strict=True)]
    found = torch.empty_strided(base, stride, dtype=dtype)
    return found.copy_(_filled(base, dtype, described.get("below"))).expand(shape)


def _filled(shape: list[int], dtype: torch.dtype, below: int | None) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex64 if dtype.is_complex else torch.float32).to(dtype)
    return torch.randint(0, below or 2, shape, dtype=dtype)

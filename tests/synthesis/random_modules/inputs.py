"""Inputs of random modules: their dimensions by name, and tensors of them with other values, layouts, sizes and dtypes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

#: The most elements of an input at other sizes.
MOST_ELEMENTS = 6000
_OTHER_SIZES = (1, 2, 3, 5, 6, 9, 11, 17)


@dataclass(frozen=True)
class Input:
    """``dimensions``: the name of a size, or 1. ``kind``: "float", "int64", "int32" or "bool"."""

    dimensions: tuple[str | int, ...]
    kind: str


#: What a call is given, and what is particular about it.
Call = tuple[str, list[torch.Tensor]]


def drawn_inputs(r: random.Random) -> tuple[dict[str, int], dict[str, Input]]:
    sizes = {
        "A": r.choice([1, 2, 2, 3, 4]),
        "B": r.choice([2, 3, 4, 5, 7]),
        "C": r.choice([3, 4, 6, 8, 5]),
        "D": r.choice([130, 700]) if r.random() < 0.06 else r.choice([2, 4, 5, 7, 8, 9, 16]),
        "E": r.choice([3, 4, 6]),
    }
    whole = r.choice(["D", "BD", "BD", *["ABD"] * 3, *["ABCD"] * 3, "AECBD"])

    def part() -> tuple[str | int, ...]:
        """Dimensions that broadcast against the first input's."""
        k = r.random()
        last = whole if k < 0.55 else whole[r.randint(0, len(whole) - 1) :]
        return tuple(last) if k < 0.3 else tuple(name if r.random() < 0.75 else 1 for name in last)

    inputs = {"x": Input(tuple(whole), "float")}
    if r.random() < 0.75:
        inputs["y"] = Input(part(), "float")
    if r.random() < 0.25:
        inputs["z"] = Input((r.choice("BCDE"), r.choice("BCDE")), "float")
    if r.random() < 0.35:
        kind = r.choice(["int64", "int64", "int64", "int32"])
        inputs["i"] = Input(part() if r.random() < 0.6 else (r.choice("BCDE"),), kind)
    if r.random() < 0.3:
        inputs["m"] = Input(part(), "bool")
    if r.random() < 0.08:
        inputs["s"] = Input((), "float")
    return sizes, inputs


#: What floats may hold: ordinary numbers, NaN and infinities among them, many equal ones, large ones, tiny ones.
VALUES = ("ordinary", "special", "equal", "large", "tiny")


def _floats(shape: list[int], values: str, g: torch.Generator) -> torch.Tensor:
    t = torch.randn(shape, generator=g)
    if values == "special":
        pool = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-40, -1e-42, 1e12, -1e12, 1.0])
        chosen = pool[torch.randint(0, len(pool), shape, generator=g)]
        return torch.where(torch.rand(shape, generator=g) < 0.3, chosen, t)
    if values == "equal":
        signs = torch.tensor([1.0, -1.0])[torch.randint(0, 2, shape, generator=g)]
        return torch.randint(-3, 4, shape, generator=g).float() * signs
    return t * {"ordinary": 1.0, "large": 1e4, "tiny": 1e-12}[values]


def _integers(shape: list[int], values: str, kind: str, g: torch.Generator) -> torch.Tensor:
    t = torch.randint(-4, 9, shape, generator=g)
    if values in ("special", "large"):
        ends = [2**62, -(2**63)] if kind == "int64" else [5, -5]
        pool = torch.tensor([2**31 - 1, -(2**31), 0, -1, 255, 128, *ends])
        t = torch.where(torch.rand(shape, generator=g) < 0.3, pool[torch.randint(0, len(pool), shape, generator=g)], t)
    return t.to(getattr(torch, kind))


def _tensor(of: Input, shape: list[int], dtype: torch.dtype, values: str, g: torch.Generator) -> torch.Tensor:
    if of.kind == "float":
        return _floats(shape, values, g).to(dtype)
    if of.kind == "bool":
        if values in ("special", "equal"):
            return torch.full(shape, values == "equal")
        return torch.rand(shape, generator=g) < 0.5
    return _integers(shape, values, of.kind, g)


def example(
    inputs: dict[str, Input], sizes: dict[str, int], dtype: torch.dtype, seed: int, values: str = "ordinary"
) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(seed + 1)
    shapes = ([d if isinstance(d, int) else sizes[d] for d in of.dimensions] for of in inputs.values())
    return [_tensor(of, shape, dtype, values, g) for of, shape in zip(inputs.values(), shapes, strict=True)]


def read_layout(t: torch.Tensor, r: random.Random) -> torch.Tensor:
    """Another layout of the values, which may be read; or some of them, expanded."""
    kind = r.choice(["transposed", "permuted", "steps", "expanded", "channels last", "offset", "part", "as it is"])
    if not t.numel() or not t.dim():
        return t
    if kind == "transposed":
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == "permuted":
        order = r.sample(range(t.dim()), t.dim())
        return t.permute(order).contiguous().permute([order.index(d) for d in range(t.dim())])
    if kind == "expanded":
        return t.narrow(r.randrange(t.dim()), 0, 1).expand(t.shape)
    if kind == "channels last" and t.dim() == 4:
        return t.contiguous(memory_format=torch.channels_last)
    if kind == "channels last" and t.dim() == 5:
        return t.contiguous(memory_format=torch.channels_last_3d)
    if kind == "steps":
        wide = torch.zeros(*t.shape[:-1], 2 * t.shape[-1] + 1, dtype=t.dtype)
        return wide[..., 1::2].copy_(t)
    if kind == "offset":
        return torch.zeros(t.numel() + 3, dtype=t.dtype)[3:].view(t.shape).copy_(t)
    if kind == "part":
        wide = torch.zeros([n + 2 for n in t.shape], dtype=t.dtype)
        return wide[tuple(slice(1, n + 1) for n in t.shape)].copy_(t)
    return t


def other_calls(
    inputs: dict[str, Input], sizes: dict[str, int], dtype: torch.dtype, seed: int, r: random.Random
) -> Iterator[Call]:
    """Calls with other values, layouts, sizes and dtypes than the example's."""

    def of(words: str, sizes: dict[str, int] = sizes, values: str = "ordinary", seed: int = seed) -> Call:
        return words, example(inputs, sizes, dtype, seed, values)

    def laid_out(call: Call) -> Call:
        return f"{call[0]}, other layouts", [read_layout(t, r) for t in call[1]]

    for values in VALUES[1:]:
        yield of(f"{values} values", values=values)
    for k in range(3):
        yield laid_out(of("values", seed=seed + k))
    names = sorted({d for one in inputs.values() for d in one.dimensions if isinstance(d, str)})
    for name in names:
        for n in (sizes[name] + 1, 1, 0, 2 * sizes[name] + 3, 2, 13):
            if n != sizes[name]:
                yield of(f"{name} is {n}", {**sizes, name: n})
    for _ in range(4):
        other = {name: r.choice(_OTHER_SIZES) for name in sizes}
        yield of(f"sizes {other}", other)
    yield laid_out(of("sizes + 1", {name: n + 1 for name, n in sizes.items()}))
    yield of("sizes * 2, equal values", {name: 2 * n for name, n in sizes.items()}, "equal")
    if seed % 4 == 0:
        yield from _other_dtypes(example(inputs, sizes, dtype, seed))


def same_tensor_twice(arguments: list[torch.Tensor]) -> Iterator[Call]:
    for a, b in itertools.combinations(range(len(arguments)), 2):
        if (arguments[a].shape, arguments[a].dtype) == (arguments[b].shape, arguments[b].dtype):
            yield "one tensor twice", [arguments[a] if k == b else t for k, t in enumerate(arguments)]


def _other_dtypes(arguments: list[torch.Tensor]) -> Iterator[Call]:
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.float32, torch.int64):
        yield f"floats as {dtype}", [t.to(dtype) if t.is_floating_point() else t for t in arguments]
    for dtype in (torch.int32, torch.int64, torch.uint8):
        whole = [not t.is_floating_point() and t.dtype != torch.bool for t in arguments]
        yield f"integers as {dtype}", [t.to(dtype) if w else t for t, w in zip(arguments, whole, strict=True)]


def small(call: Call) -> bool:
    return all(prod(t.shape) <= MOST_ELEMENTS for t in call[1])


def as_float64(arguments: list[Any]) -> list[Any]:
    return [t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in arguments]

"""Values as Python: constructor arguments exactly, example inputs by shape, dtype and kind of values."""

from __future__ import annotations

import math
from typing import Any

import torch

_EXACT = (bool, int, str, bytes)
#: dtypes that torch.randn and torch.randint do not make
_BY_CONVERSION = frozenset(["uint16", "uint32", "uint64"])
_LONGEST = 2000  # characters of one value


def literal(value: Any) -> str | None:
    """Python that gives an equal value of the same type, or None. Without imports but ``torch``."""
    text = _literal(value)
    return text if text is not None and len(text) <= _LONGEST else None


def _literal(value: Any) -> str | None:
    if value is None or value is Ellipsis or isinstance(value, torch.dtype):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    kind = type(value)
    if kind in _EXACT:
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value!r}")'
    if kind is complex:
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    if kind is torch.Size:
        return f"torch.Size({[*value]})"
    if kind in (slice, range):
        inner = _joined([value.start, value.stop, value.step])
        return None if inner is None else f"{kind.__name__}({inner})"
    if kind in (list, tuple, set, frozenset):
        inner = _joined(sorted(value, key=repr) if kind in (set, frozenset) else value)
        if inner is None:
            return None
        if kind is tuple:
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if kind is list:
            return f"[{inner}]"
        return f"{kind.__name__}([{inner}])" if value else f"{kind.__name__}()"
    if kind is dict:
        pairs = [(_literal(key), _literal(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    return None


def _joined(values: Any) -> str | None:
    items = [_literal(item) for item in values]
    return None if None in items else ", ".join(str(item) for item in items)


def example(value: Any) -> str | None:
    """Python for something like ``value``: tensors at random with its shape and dtype, all else exactly."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    kind = type(value)
    if kind in (list, tuple):
        items = [example(item) for item in value]
        if None in items:
            return None
        inner = ", ".join(str(item) for item in items)
        return f"[{inner}]" if kind is list else f"({inner},)" if len(items) == 1 else f"({inner})"
    if kind is dict:
        pairs = [(literal(key), example(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    return literal(value)


def tensor(value: torch.Tensor) -> str | None:
    """A call of torch that makes a tensor of the shape, dtype and layout of ``value``, with values of its kind."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
        return None
    value = value.detach()
    if value.is_quantized or value.device.type not in ("cpu", "cuda"):
        return None
    stored = _as_stored(value)
    if stored is None:
        return _values(value)
    base, how = stored
    text = _values(base)
    if text is not None and " > " in text:
        text = f"({text})"
    return None if text is None else f"{text}{how}"


def _as_stored(value: torch.Tensor) -> tuple[torch.Tensor, str] | None:
    """The contiguous tensor that ``value`` is a transposed or expanded view of, and how; None if it is neither."""
    if value.is_contiguous() or value.numel() == 0:
        return None
    if any(stride == 0 and n > 1 for n, stride in zip(value.shape, value.stride(), strict=True)):
        base = value[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in value.stride())]
        return (base, f".expand({_sizes(value.shape)})") if base.is_contiguous() else None
    order = sorted(range(value.dim()), key=lambda i: (-value.stride()[i], i))
    base = value.permute(order)
    if not base.is_contiguous():
        return None
    back = [order.index(i) for i in range(value.dim())]
    return base, ".t()" if value.dim() == 2 else f".permute({', '.join(map(str, back))})"


def _sizes(shape: torch.Size) -> str:
    return ", ".join(str(int(n)) for n in shape)


def _values(value: torch.Tensor) -> str | None:
    sizes = _sizes(value.shape)
    shape = f"({sizes},)" if value.dim() == 1 else f"({sizes})"
    dtype = str(value.dtype)
    other = "" if value.dtype is torch.get_default_dtype() else f", dtype={dtype}"
    if value.dtype is torch.bool:
        return _booleans(value, sizes)
    if value.dim() == 0:
        number = literal(value.item())
        return None if number is None else f"torch.tensor({number}, dtype={dtype})"
    if value.is_complex():
        return f"torch.randn({sizes}{other})"
    if not value.is_floating_point():
        return _integers(value, shape, dtype)
    if value.element_size() == 1:  # float8
        return f"torch.randn({sizes}).to({dtype})"
    return _floats(value, sizes, other)


def _booleans(value: torch.Tensor, sizes: str) -> str:
    if value.dim() == 0:
        return f"torch.tensor({value.item()})"
    if value.numel() == 0 or value.all():
        return f"torch.ones({sizes}, dtype=torch.bool)"
    if not value.any():
        return f"torch.zeros({sizes}, dtype=torch.bool)"
    ones = torch.ones_like(value)
    for how in ("tril", "triu") if value.dim() >= 2 else ():
        for diagonal in (0, 1, -1):
            if torch.equal(getattr(ones, how)(diagonal), value):
                return f"torch.ones({sizes}, dtype=torch.bool).{how}({diagonal or ''})"
    return f"torch.rand({sizes}) > 0.5"


def _integers(value: torch.Tensor, shape: str, dtype: str) -> str:
    wide = value.to(torch.int64)
    least, most = (int(wide.min()), int(wide.max())) if value.numel() else (0, 0)
    short = "" if value.dtype is torch.int64 else f", dtype={dtype}"
    if value.dim() == 1 and value.numel() > 1 and torch.equal(wide, torch.arange(value.numel())):
        return f"torch.arange({value.numel()}{short})"
    bounds = f"{min(least, 0)}, {most + 1}"
    if dtype.removeprefix("torch.") in _BY_CONVERSION:
        return f"torch.randint({bounds}, {shape}).to({dtype})"
    return f"torch.randint({bounds}, {shape}{short})"


def _floats(value: torch.Tensor, sizes: str, other: str) -> str:
    """At random with the values' range: normal, or uniform in [0, 1); ones, zeros and masks as they are."""
    if value.numel() == 0:
        return f"torch.zeros({sizes}{other})"
    least, most = value.min().item(), value.max().item()
    if least == most and least in (0, 1):
        return f"torch.{'zeros' if least == 0 else 'ones'}({sizes}{other})"
    extreme = least if least < -1e3 else most if most > 1e3 else None
    if extreme is not None and bool(((value == 0) | (value == extreme)).all()):  # an additive mask
        number = literal(extreme)
        return f"torch.zeros({sizes}{other}).masked_fill(torch.rand({sizes}) > 0.5, {number})"
    if (least, most) == (0, 1) and bool(((value == 0) | (value == 1)).all()):
        return f"(torch.rand({sizes}) > 0.5).to({value.dtype!s})"
    if least >= 0 and most <= 1 and value.numel() > 1:
        return f"torch.rand({sizes}{other})"
    return f"torch.randn({sizes}{other})"

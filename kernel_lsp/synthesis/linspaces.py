"""``torch.linspace`` of as many numbers as a size says, which by itself fixes that size in torch.export."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NAMES = ("start", "end", "steps")
#: what else the numbers made here can be told
_ALSO = {"device", "dtype"}


class LinspacesOfSizes(TorchFunctionMode):
    """In this context such a call is traced as ``arange`` and arithmetic: from both ends, each as far as the middle, as torch computes it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.linspace:
            given = dict(zip(_NAMES, args, strict=False)) | kwargs
            if isinstance(given.get("steps"), torch.SymInt) and _is_plain(given):
                return _evenly_apart(float(given["start"]), float(given["end"]), given["steps"], given.get("device"))
        return func(*args, **kwargs)


def _is_plain(given: dict[str, Any]) -> bool:
    """Whether it is a row of float32 between two numbers of Python."""
    dtype = given.get("dtype") or torch.get_default_dtype()
    ends = (given.get("start"), given.get("end"))
    return (
        dtype == torch.float32 and all(type(end) in (int, float) for end in ends) and given.keys() <= {*_NAMES, *_ALSO}
    )


def _evenly_apart(start: float, end: float, steps: Any, device: Any) -> torch.Tensor:
    """float32 [steps]; a row of one is its start."""
    place = torch.arange(steps, device=device, dtype=torch.float32)
    last = torch.sym_max(steps - 1, 1)
    rest = (steps - 1) - place
    first, second = (places * (end - start) / last for places in (place, rest))
    return torch.where(place <= rest, first + start, end - second)

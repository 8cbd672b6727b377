"""How far rounding alone may move an answer: for true answers of zero, and for what cancels to nearly nothing.

A sum that is rounded in precision u is off by at most a small multiple of ``u * sum|x|`` (Higham, Accuracy and Stability
of Numerical Algorithms, 2nd ed., section 4.2), whatever its true value is. The scale ``sum|x|`` of an arbitrary module is
found as Monte Carlo arithmetic finds it (Parker 1997): in float64 every input and every intermediate result t is replaced
by ``t + d * |t|``, once with one sign for a whole tensor, a few times with a random sign for each element, and the answer moves
by ``d * S``, of which the most is taken. For a mean S is the mean of the magnitudes; for an answer without cancellation it is a few times the answer.
Where S depends on d the module is not continuous there (rounding, comparisons), and nothing is allowed for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import state
from kernel_lsp.validation.trees import copied, tensors_of

#: multiples of the dtype's epsilon times S that an answer may be off by
_ULPS = 4.0
_STEPS = (2.0**-30, 2.0**-34)
#: signs that a whole tensor has in turn, and seeds of those that each element has: one draw may happen to cancel in a sum of few elements
_WHOLE, _SEEDS = None, (17, 18, 19, 20)


class _Noisy(TorchDispatchMode):
    """Moves the result of every operator by ``step`` of its magnitude, with random signs from ``seed``, or one for a whole tensor."""

    def __init__(self, step: float, seed: int | None) -> None:
        super().__init__()
        self.step, self.seed = step, seed
        self.generator: torch.Generator | None = None
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None for r in func._schema.returns):
            return out
        return pytree.tree_map(lambda t: self.moved(t) if isinstance(t, torch.Tensor) else t, out)

    def moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype is not torch.float64 or tensor.numel() == 0:
            return tensor
        self.count += 1
        if self.seed is _WHOLE:
            sign: Any = 1.0 if self.count % 2 else -1.0
        else:
            if self.generator is None:
                self.generator = torch.Generator(tensor.device).manual_seed(self.seed)
            sign = torch.rand(tensor.shape, generator=self.generator, device=tensor.device, dtype=torch.float64)
            sign = torch.where(sign < 0.5, -1.0, 1.0)
        return tensor + self.step * sign * tensor.abs()


def floors(
    double: torch.nn.Module,
    tree: tuple[Any, Any],
    answer: list[torch.Tensor],
    dtypes: list[Any],
    drawing: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
    results: Callable[[Any], list[torch.Tensor]] = tensors_of,
) -> list[float]:
    """For each output what it may be off by absolutely. ``tree`` and ``answer`` are in float64.

    ``dtypes``: of the module's own outputs. ``drawing``: a context in which every call draws the same numbers. ``results``: the tensors
    that ``answer`` has, from what forward returned. Zero where the scale cannot be told.

    Raises:
        Exception: what the module raises.
    """
    scales = [0.0] * len(answer)
    for seed in (_WHOLE, *_SEEDS):
        moved = [_moves(double, tree, answer, step, seed, drawing, results) for step in _STEPS]
        for i, (coarse, fine) in enumerate(zip(*moved, strict=True)):
            if 0.5 * fine <= coarse <= 2 * fine:
                scales[i] = max(scales[i], fine)
    return [
        _ULPS * torch.finfo(d).eps * s if d.is_floating_point or d.is_complex else 0.0
        for s, d in zip(scales, dtypes, strict=True)
    ]


def _moves(
    double: torch.nn.Module,
    tree: tuple[Any, Any],
    answer: list[torch.Tensor],
    step: float,
    seed: int | None,
    drawing: Callable[[], AbstractContextManager[Any]],
    results: Callable[[Any], list[torch.Tensor]],
) -> list[float]:
    """Of each output: how far it moves on average, divided by ``step``."""
    noisy = _Noisy(step, seed)
    args, kwargs = pytree.tree_map(lambda t: noisy.moved(t.clone()) if isinstance(t, torch.Tensor) else t, tree)
    with torch.no_grad(), state.unchanged(double):
        with noisy, drawing():
            out = double(*args, **kwargs)
        found = copied(results(out))  # what is put back must not change them
    result = []
    for exact, other in zip(answer, found, strict=True):
        if exact.shape != other.shape or not (exact.is_floating_point() or exact.is_complex()):
            result.append(0.0)
            continue
        finite = torch.isfinite(exact) & torch.isfinite(other)
        count = int(finite.sum())
        result.append(float(torch.where(finite, (other - exact).abs(), 0).sum()) / count / step if count else 0.0)
    return result


def neighbour(tree: tuple[Any, Any], seed: int) -> tuple[Any, Any]:
    """The inputs with every float moved by one unit in the last place or none: eager's error there is as good a sample."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.dtype.itemsize == 1:
            return value
        generator = torch.Generator(value.device).manual_seed(seed)
        kind = torch.randint(-1, 2, value.shape, generator=generator, device=value.device)
        return value + value * (kind * torch.finfo(value.dtype).eps).to(value.dtype)

    return pytree.tree_map(one, tree)

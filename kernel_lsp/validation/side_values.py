"""Other floating point numbers for the search of reaching.py: random ones, and ones that are moved along the gradient of what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import conditions, plan, state
from kernel_lsp.validation.conditions import Comparison, Watching
from kernel_lsp.validation.trees import filled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: inputs that are changed each by itself
MOST_CHANGED = 3
#: steps along a gradient: by which share of the size of an input's rows
_MOVES = (0.5, 0.5, 0.5, 1.0, 2.0, 4.0)
#: calls that a gradient takes the time of
_OF_A_GRADIENT = 3

_Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Tried:
    """Inputs that may show a side."""

    tree: Any  # None: there are none, which took its ``calls`` to find out
    sizes: dict[str, int] | None = None  # of the dynamic dimensions; None for those of the step
    growth: float = 1.0  # how many times as large tensors may be as at the step's sizes
    beyond: bool = False  # an index may be out of range
    calls: int = 0  # that it took to make them


def random(referee: Referee, step: plan.Step) -> Iterator[Tried]:
    """Inputs of other sizes, signs and offsets: all of them, then each by itself; then those that are equal to each other."""
    inputs, sizes = referee.inputs, dict(step.sizes or {})
    changes: list[_Change] = [
        *(lambda t, by=by: t * by for by in (10.0, 1000.0, 0.1, 1e-3)),  # type: ignore[misc]
        *(lambda t, by=by: by * t.abs() for by in (1.0, -1.0, 100.0, -100.0)),  # type: ignore[misc]
        *(lambda t, by=by: t + by for by in (3.0, -3.0, 30.0, -30.0, -1000.0)),  # type: ignore[misc]
        lambda t: t[:1].expand(t.shape).clone() if t.dim() else t,
        torch.zeros_like,
        torch.ones_like,
        lambda t: -torch.ones_like(t),
    ]
    floats = [i for i, leaf in enumerate(inputs.leaves) if leaf.example.is_floating_point()]
    each = [[i] for i in floats[:MOST_CHANGED]] if len(floats) > 1 else []
    seed = 60
    for which in [floats, *each] if floats else []:
        for change in changes:
            seed += 1
            sample = inputs.sample(sizes, "normal", seed)
            yield Tried(changed(sample, lambda i, t, w=which, c=change: c(t) if i in w else t))  # type: ignore[misc]
    for sign in (1.0, -1.0) if len(floats) > 1 else ():
        for noise in (0.0, 0.2):
            seed += 1
            yield Tried(_alike(inputs.sample(sizes, "normal", seed), sign, noise))
    for _ in range(8):
        seed += 1
        yield Tried(inputs.sample(sizes, "normal", seed))


def changed(tree: Any, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Any:
    """A tree with its tensors of floating point changed, of the dtypes and shapes that they had. ``change`` gets each one's number."""
    return with_tensors(tree, lambda i, t: change(i, t).to(t.dtype) if t.is_floating_point() else t)


def with_tensors(tree: Any, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Any:
    """A tree with other tensors in place of its own. ``change`` gets each one's number."""
    return filled(tree, [change(i, t) for i, t in enumerate(tensors_of(tree))])


def _alike(tree: Any, sign: float, noise: float) -> Any:
    """Each input as another one before it of its shape, or its negative, but for ``noise``."""
    first: dict[Any, torch.Tensor] = {}

    def change(_: int, tensor: torch.Tensor) -> torch.Tensor:
        like = first.setdefault(tensor.shape, tensor)
        return tensor if like is tensor else sign * like.to(tensor.dtype) + noise * tensor

    return changed(tree, change)


def directed(referee: Referee, step: plan.Step) -> Iterator[Tried]:
    """Inputs that are moved along the gradient of what is compared, for each side that nothing has shown."""
    generator = torch.Generator(referee.inputs.device).manual_seed(90)
    for way in ("of an index", "one", "all"):
        for comparison, side in conditions.unshown(referee):
            if comparison.operator not in ("gt", "ge", "lt", "le"):
                continue
            tree = referee.inputs.sample(dict(step.sizes or {}), "normal", 91)
            for move in _MOVES:
                if (comparison, side) not in conditions.unshown(referee):
                    break
                moved = _moved(referee, tree, comparison, side, way, move, generator)
                if moved is None:
                    yield Tried(None, calls=_OF_A_GRADIENT)
                    break
                tree = moved
                yield Tried(tree, calls=_OF_A_GRADIENT)


class _Operands(Watching):
    """Keeps what one comparison compares."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self.comparison = comparison
        self.found: tuple[Any, ...] = ()

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``."""
        if comparison == self.comparison:
            self.found = args[:2]
        return out


def _moved(
    referee: Referee,
    tree: Any,
    comparison: Comparison,
    side: bool,
    way: str,
    move: float,
    generator: torch.Generator,
) -> Any:
    """The inputs moved towards ``side``; None where there is no way. ``move``: the share of the size of each row."""
    oracle = referee.oracle
    leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors_of(tree)]
    wanted = [t for t in leaves if t.requires_grad]
    args, kwargs = filled(tree, [t.clone() for t in leaves])  # a forward may write to its inputs
    try:
        with torch.enable_grad(), state.unchanged(oracle.module), oracle.around(), _Operands(comparison) as operands:
            oracle.put_in_mode(oracle.module, False)
            oracle.module(*args, **kwargs)
            a, b = operands.found
            upwards = side is (comparison.operator in ("gt", "ge"))
            difference = (a - b) * (1.0 if upwards else -1.0)
            chosen = _chosen(difference, leaves, way, generator)
            if chosen is None or not difference.requires_grad:
                return None
            gradients = torch.autograd.grad((difference * chosen).sum(), wanted, allow_unused=True)
    except Exception:  # it takes no gradient, or made no such comparison there
        return None
    found = dict(zip(map(id, wanted), gradients, strict=True))

    def change(i: int, tensor: torch.Tensor) -> torch.Tensor:
        gradient = found.get(id(leaves[i]))
        if gradient is None:
            return tensor
        length, size = _length(gradient), _length(tensor).clamp_min(1.0)
        return tensor + move * size * gradient / length.clamp_min(torch.finfo(gradient.dtype).tiny)

    return changed(tree, change) if any(g is not None and bool(g.any()) for g in gradients) else None


def _length(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.norm(dim=-1, keepdim=True) if tensor.dim() else tensor.abs()


def _chosen(
    difference: torch.Tensor, leaves: list[torch.Tensor], way: str, generator: torch.Generator
) -> torch.Tensor | None:
    """1 for the elements that are to change sides: all, one of each row, or the one that an integer input is an index of."""
    if way == "all" or not difference.dim():
        return torch.ones_like(difference)
    n = difference.shape[-1]
    if way == "one":
        at = torch.randint(0, n, difference.shape[:-1], generator=generator, device=difference.device)
    else:
        fitting = [t for t in leaves if t.dtype is torch.int64 and t.shape == difference.shape[:-1]]
        fitting = [t for t in fitting if t.numel() and 0 <= int(t.min()) <= int(t.max()) < n]
        if not fitting:
            return None
        at = fitting[0]
    return torch.nn.functional.one_hot(at, n).to(difference.dtype)

"""What rounding alone may move the module's results by: asked for a candidate that would be found wrong otherwise."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from kernel_lsp.validation import noise
from kernel_lsp.validation.compare import compare
from kernel_lsp.validation.oracle import Oracle, Reference
from kernel_lsp.validation.trees import copied, doubled, tensors_of

#: how often eager is looked at on neighbouring inputs before a candidate is found wrong
_NEIGHBOURS = 4


def bounds(
    oracle: Oracle, tree: tuple[Any, Any], reference: Reference, train: bool, left: Sequence[str] = ()
) -> tuple[list[float], float]:
    """(what rounding alone may move each output by, eager's largest relative error at neighbouring inputs).

    ``left``: paths of tensors in ``Reference.exact_after``; then of these, which the call leaves in the module, not of outputs.
    Costs several evaluations: for a candidate that would be found wrong otherwise. Where float64 does not run, only the error is known,
    from how far eager's answer moves with its inputs; zeros where float64 is missing for another reason.

    Raises:
        torch.OutOfMemoryError: the device has no memory for the evaluations.
    """
    tensors = _held(left, reference.after, oracle.module) or tensors_of(reference.eager)
    nothing = [0.0] * len(tensors), 0.0
    if reference.exact is None:
        return nothing
    if oracle.double is None or reference.exact is reference.eager:
        return nothing[0], _moved(oracle, tree, reference, train)
    oracle.put_in_mode(oracle.double, train)
    oracle.drawn = reference.drawn
    worst = 0.0
    try:
        exact = [reference.exact_after[path] for path in left] or tensors_of(reference.exact)
        double = oracle.double

        def results(out: Any) -> list[torch.Tensor]:
            return [operator.attrgetter(path)(double) for path in left] or tensors_of(out)

        with oracle.made_wide():
            dtypes = [t.dtype for t in tensors]
            floors = noise.floors(double, doubled(tree), exact, dtypes, oracle.drawing_the_same, results)
        for seed in range(_NEIGHBOURS):
            near = noise.neighbour(tree, seed)
            eager, after = oracle.call(copied(near), train)
            exact_after: dict[str, Any] = {}
            right = oracle.exact(near, train, oracle.drawn, exact_after)
            if right is None:  # of this one nothing is known; float64 goes on elsewhere
                continue
            if left:
                eager, right = _held(left, after, oracle.module), _held(left, exact_after, double)
            worst = max(worst, compare(eager, eager, right).eager_error)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return nothing
    return floors, worst


def _moved(oracle: Oracle, tree: tuple[Any, Any], reference: Reference, train: bool) -> float:
    """How far eager's answer moves, relatively, where each input moves by a unit in the last place, which no rounding could tell apart.

    Raises:
        torch.OutOfMemoryError: the device has no memory for the evaluations.
    """
    worst = 0.0
    for seed in range(_NEIGHBOURS):
        try:
            moved = oracle.eager(noise.neighbour(tree, seed), train)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # it takes no inputs but these
            return 0.0
        worst = max(worst, compare(moved, moved, reference.eager).eager_error)
    return worst


def _held(paths: Sequence[str], after: dict[str, torch.Tensor], module: torch.nn.Module) -> list[torch.Tensor]:
    """The tensors after a call: what it changed, and what it left, which may be other ones in float32 and in float64."""
    return [after[path] if path in after else operator.attrgetter(path)(module) for path in paths]

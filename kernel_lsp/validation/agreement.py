"""Whether a candidate's output agrees with the reference: in float64 where there is some, with eager where there is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp import schema, speedup
from kernel_lsp.validation import (
    channel,
    chunks,
    compare,
    exchange,
    rounded_products,
    rounding_bounds,
    tf32,
    tied_indices,
    undecided_sides,
)
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.slices import narrowed
from kernel_lsp.validation.trees import filled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.progress import Progress
    from kernel_lsp.validation.referee import Referee

#: how many times eager's error may be what it is on these inputs, if it is so large on neighbouring ones
_LUCK = 30.0
#: said where a check can tell nothing of the numbers
UNDECIDED = "values for which rounding decides what the module chooses"


def compared(
    referee: Referee,
    out: Any,
    reference: Reference,
    eager_error: float = 0.0,
    tree: Any = None,
    train: bool = False,
) -> compare.Comparison:
    """A candidate's output against the reference: float64 where there is some, eager where there is not.

    ``eager_error``: eager's own against float64, where that is known from elsewhere. ``tree``: the inputs, where a
    candidate is not found wrong before it is known what rounding alone may do there (``rounding_bounds.bounds``).
    """
    if tree is not None:
        out = tied_indices.settled(referee, out, reference, tree, train)
    eager = plainly(reference.eager)
    if reference.exact is not None:
        exact = plainly(reference.exact)
        found = compare.compare(out, eager, exact)
        explained: list[float] | None = None
        if not found.passed and math.isfinite(found.error) and tree is not None and referee.held_to != "strict":
            found, explained = _as_asked(referee, out, reference, tree, train, found)
        if not found.passed and math.isfinite(found.error) and tree is not None:
            floors, elsewhere = rounding(referee, tree, reference, train, found)
            found = compare.compare(out, eager, exact, floors=floors, eager_error=elsewhere, explained=explained)
        return _said_of(referee, noted(referee, found))
    worst = compare.Comparison(eager_error=eager_error)
    most = 0.0
    if reference.slices and compare.structure(out) == compare.structure(eager):
        worst, most = _in_slices(
            referee, exchange.expected_of(out), exchange.expected_of(eager), reference, tree, train
        )
        noted(referee, worst)
        if not worst.passed or not reference.said:  # wrong, or all of it was looked at
            return _said_of(referee, worst)
        referee.progress.limits.append(reference.said)
    worst.reason = compare.agree(out, eager, max(worst.eager_error, most)).reason
    if not worst.passed and tree is not None and referee.held_to != "strict":
        found_errors = rounded_products.errors(
            referee.oracle, tree, reference, train, referee.held_to, len(rounded_products.SAMPLES)
        )
        most = max(most, _noted_as_explained(referee, found_errors))
        worst.reason = compare.agree(out, eager, max(worst.eager_error, most)).reason
    return _said_of(referee, worst)


def rounding(
    referee: Referee,
    tree: Any,
    reference: Reference,
    train: bool,
    found: compare.Comparison,
    left: Sequence[str] = (),
) -> tuple[list[float], float]:
    """(what rounding alone may move each result by, the largest error of eager's that counts); ``found``: without these.

    ``left``: as in ``rounding_bounds.bounds``.
    """
    floors, elsewhere = rounding_bounds.bounds(referee.oracle, tree, reference, train, left)
    elsewhere = min(elsewhere, _LUCK * max(found.eager_error, compare.FLOOR[torch.float32]))
    if may_round(referee):
        elsewhere = max(elsewhere, referee.example_error, _error_in_tf32(referee, tree, reference, train))
    return floors, elsewhere


def _as_asked(
    referee: Referee, out: Any, reference: Reference, tree: Any, train: bool, found: compare.Comparison
) -> tuple[compare.Comparison, list[float] | None]:
    """The comparison by what the precision explains that was asked for, and what that is.

    By one sample of rounding, and where that does not do by all. ``found``: the comparison without.
    """
    explained = None
    for samples in (1, len(rounded_products.SAMPLES)):
        explained = rounded_products.errors(referee.oracle, tree, reference, train, referee.held_to, samples)
        if explained is None:
            break
        found = compare.compare(out, plainly(reference.eager), plainly(reference.exact), explained=explained)
        _noted_as_explained(referee, explained)
        if found.passed:
            break
    return found, explained


def _noted_as_explained(referee: Referee, explained: list[float] | None) -> float:
    """The largest of the errors, which is kept for what has none of its own."""
    most = max(explained or [0.0], default=0.0)
    referee.explained = max(referee.explained, most)
    return most


def _said_of(referee: Referee, found: compare.Comparison) -> compare.Comparison:
    """A reason that names the precision that the candidate is held to."""
    if found.reason and referee.held_to != "strict" and math.isfinite(found.error):
        found.reason += f" (at {speedup.precision_words(referee.held_to)})"
    return found


def _in_slices(
    referee: Referee, mine: list[torch.Tensor], eager: list[torch.Tensor], reference: Reference, tree: Any, train: bool
) -> tuple[compare.Comparison, float]:
    """Against float64 slice by slice, by the scale of the whole and eager's error over all of the slices.

    Also the largest error that the precision explains which was asked for.
    """
    worst, suspect, most = compare.Comparison(), compare.Comparison(), 0.0
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(mine, eager, strict=True)):
        return compare.compare(mine, eager, eager), most  # which says what is different
    scales = [compare.scale_of(t) for t in eager]
    assert reference.slices is not None
    for part in reference.slices(reference):
        exact = exchange.expected_of(part.exact)
        one = compare.compare(narrowed(mine, part.dims, part), narrowed(eager, part.dims, part), exact, scales=scales)
        if not one.passed and math.isfinite(one.error) and tree is not None and referee.held_to != "strict":
            explained = rounded_products.errors_of_slice(
                referee.oracle, tree, part, train, referee.held_to, len(rounded_products.SAMPLES), scales
            )
            most = max(most, _noted_as_explained(referee, explained))
            narrow = narrowed(mine, part.dims, part), narrowed(eager, part.dims, part)
            one = compare.compare(*narrow, exact, scales=scales, explained=explained)
        worst.error, worst.eager_error = max(worst.error, one.error), max(worst.eager_error, one.eager_error)
        if one.reason and one.error > suspect.error:
            suspect = one
            suspect.reason = f"in slice {part.start} to {part.stop}: {one.reason}"
    if suspect.reason and any(suspect.error > compare.allowed(worst.eager_error, t.dtype) for t in eager):
        worst.reason = suspect.reason
    return worst, most


def noted(referee: Referee, result: compare.Comparison) -> compare.Comparison:
    """``result``, after its errors went into the largest of the validation; an infinite one does not count.

    Nor do those beyond what the graph says that the module takes: errors of half types are of another size.
    """
    if math.isfinite(result.error) and not referee.progress.beyond:
        referee.progress.compared = True
        if result.error > referee.progress.error:
            referee.progress.error, referee.progress.error_check = result.error, referee.progress.check
        referee.progress.eager_error = max(referee.progress.eager_error, result.eager_error)
        if referee.progress.check == schema.EXAMPLE:
            _noted_on_the_example(referee.progress, result)
    return result


def _noted_on_the_example(progress: Progress, result: compare.Comparison) -> None:
    progress.example_error = max(progress.example_error or 0.0, result.error)
    if math.isfinite(result.eager_error):
        progress.example_eager_error = max(progress.example_eager_error or 0.0, result.eager_error)


def but_for_nan(
    referee: Referee, out: Any, reference: Reference, found: compare.Comparison, tree: Any = None, train: bool = False
) -> compare.Comparison:
    """After products a NaN passes for an infinity: what 0 * inf comes into depends on how a product is split."""
    taken = []
    for mine, theirs in zip(tensors_of(out), tensors_of(reference.eager), strict=False):
        if mine.shape != theirs.shape or not mine.dtype.is_floating_point:
            return found
        theirs = theirs.to(mine.device)
        taken.append(torch.where(torch.isnan(mine) & torch.isinf(theirs), theirs, mine))
    second = compared(referee, filled(out, taken), reference, tree=tree, train=train)
    if second.passed:
        referee.progress.limits.append(
            "infinities that go into products: it gives NaN for some that eager gives as inf"
        )
    return second if second.passed else found


def but_for_overflow(
    referee: Referee, out: Any, reference: Reference, found: compare.Comparison, tree: Any = None, train: bool = False
) -> compare.Comparison:
    """For huge inputs what eager overflows for, and float64 does not, is left out of the comparison.

    A variance of float32 is infinite there, and whether a NaN or a number comes of that depends on the formula.
    """
    if reference.exact is None:
        return found
    taken, left_out = [], 0
    for mine, theirs, exact in zip(*map(tensors_of, (out, reference.eager, reference.exact)), strict=False):
        if mine.shape != theirs.shape or not mine.dtype.is_floating_point:
            return found
        theirs, exact = theirs.to(mine.device), exact.to(mine.device)
        overflows = ~torch.isfinite(theirs) & torch.isfinite(exact)
        left_out += int(overflows.sum())
        taken.append(torch.where(overflows, theirs, mine))
    if not left_out:
        return found
    second = compared(referee, filled(out, taken), reference, tree=tree, train=train)
    if second.passed:
        referee.progress.limits.append("huge values for which eager itself overflows")
    return second if second.passed else found


def but_for_choices(
    referee: Referee, out: Any, reference: Reference, found: compare.Comparison, tree: Any, train: bool = False
) -> compare.Comparison:
    """A result that turns on which of equal elements the module chooses (a router's, at tiny values) is but held to its size.

    So it is where eager and float64 choose otherwise, and eager's error is such that an answer of zeros would pass. Of integers it is each
    element in which they differ, and where a third differs all. Where they choose alike it is what another choice changes that is as good,
    or another side of a bound that rounding may take.
    """
    if reference.exact is None or reference.exact is reference.eager or not math.isfinite(found.error):
        return found
    triples = list(zip(*map(tensors_of, (out, reference.eager, reference.exact)), strict=True))
    taken = [_undecided(*three) for three in triples]
    parted = any(one is not mine for one, (mine, *_) in zip(taken, triples, strict=True))
    if not parted or not tied_indices.part(referee.oracle, tree, reference, train):
        choices = tied_indices.otherwise(referee.oracle, tree, reference, train)
        sides = undecided_sides.otherwise(referee.oracle, tree, reference, train)
        shapes = [eager.shape for _, eager, _ in triples]
        if not (choices or sides) or any([t.shape for t in other] != shapes for other in (*choices, *sides)):
            return found
        taken = [
            _if_chosen_otherwise(mine, eager, [other[i] for other in choices], [other[i] for other in sides])
            for i, (mine, eager, _) in enumerate(triples)
        ]
    second = compared(referee, filled(out, taken), reference, tree=tree, train=train)
    if second.passed:
        referee.progress.limits.append(UNDECIDED)
    return second if second.passed else found


#: the share of the largest change that another choice makes, from which an element may change by as much as any
_MUCH = 1e-3


def _if_chosen_otherwise(
    mine: torch.Tensor, eager: torch.Tensor, choices: list[torch.Tensor], sides: list[torch.Tensor]
) -> torch.Tensor:
    """A candidate's result with eager's elements where another choice, or another side of a bound, gives another that its own may be.

    Floats may differ from eager's by three times as much as they do there, or as any do where they change much: a third choice may change an
    element by more. Integers have to be among the numbers that other choices give, or between those that other sides give there.
    """
    dtype = mine.dtype
    if dtype.is_floating_point and dtype.itemsize == 1:  # float8, in which nothing can be computed
        wide = [[t.float() for t in some] for some in (choices, sides)]
        kept = _if_chosen_otherwise(mine.float(), eager.float(), *wide)
        return kept.to(dtype)
    eager = eager.to(mine.device)
    choices, sides = ([t.to(mine.device) for t in some] for some in (choices, sides))
    by_choice, by_side = (_changed(eager, some) for some in (choices, sides))
    if dtype.is_floating_point or dtype.is_complex:
        changes = [(other - eager).abs().double().nan_to_num(0.0, 0.0, 0.0) for other in (*choices, *sides)]
        change = torch.stack(changes).amax(0)
        most = change.max() if change.numel() else 0.0
        reach = torch.where(change >= _MUCH * most, most, change)
        free = (by_choice | by_side) & ((mine - eager).abs().double() <= compare.FACTOR * reach)
    elif dtype is torch.bool:
        free = by_choice | by_side
    else:
        free = by_choice & torch.isin(mine, torch.cat([t.reshape(-1) for t in (eager, *choices)]))
        if sides:
            seen = torch.stack([eager, *sides])
            free |= by_side & (mine >= seen.amin(0)) & (mine <= seen.amax(0))
    return torch.where(free, eager, mine)


def _changed(eager: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    """Where one of ``others`` has another element; a NaN is as good as another."""
    found = torch.zeros_like(eager, dtype=torch.bool)
    for other in others:
        found |= ~compare.same(eager, other)
    return found


def _undecided(mine: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """A candidate's result with eager's numbers where rounding decides, and its own might be as good.

    Of floats, where eager's numbers are so far from float64's that an answer of zeros would pass: those that are no larger than such results are.
    Of integers those that differ between eager and float64; all, where at least a third does: then a choice elsewhere decides their order, too.
    Only numbers that are among the results of either are taken.
    """
    eager, exact = eager.to(mine.device), exact.to(mine.device)
    if mine.is_floating_point() or mine.is_complex():
        if compare.FACTOR * compare.compare(eager, eager, exact).eager_error < 1:
            return mine
        most = max(float(torch.where(torch.isfinite(t), t.abs(), 0).max()) for t in (eager, exact))
        return torch.where(mine.abs() <= compare.FACTOR * most, eager, mine)
    exact = exact.to(eager.dtype)
    differ = eager != exact
    if not (count := int(differ.sum())):
        return mine
    free = differ | (compare.FACTOR * count >= differ.numel())
    if mine.dtype is not torch.bool:
        free &= torch.isin(mine, torch.cat([eager.reshape(-1), exact.reshape(-1)]))
    return torch.where(free, eager, mine)


def precision(referee: Referee) -> str:
    """What results were held to: ``fp32`` and the like by their dtype, or the precision that was asked for where products round to it."""
    floats = [leaf.example.dtype for leaf in referee.inputs.leaves if leaf.example.dtype.is_floating_point]
    dtypes = floats or [p.dtype for p in referee.module.parameters() if p.dtype.is_floating_point]
    if not dtypes:
        return ""
    short = {torch.float32: "fp32", torch.float64: "fp64", torch.float16: "fp16", torch.bfloat16: "bf16"}
    if dtypes[0] is torch.float32 and referee.held_to != "strict":
        return referee.held_to
    return short.get(dtypes[0], str(dtypes[0]).removeprefix("torch."))


def products(referee: Referee) -> bool:
    """Whether the module's graph has a matrix product, convolution or attention, by the names of its operators."""
    words = ("mm", "matmul", "linear", "conv", "dot", "einsum", "attention")
    return any(word in op for op in referee.inputs.ops for word in words)


def multiplies_float32(referee: Referee) -> bool:
    """Whether the module has products, of float32 as far as inputs and parameters tell."""
    kinds = [leaf.example.dtype for leaf in referee.inputs.leaves]
    kinds += [p.dtype for p in (*referee.module.parameters(), *referee.module.buffers())]
    return torch.float32 in kinds and products(referee)


def may_round(referee: Referee) -> bool:
    """Whether torch may take TF32 for the module's products: for which shapes it does depends on the library's choice."""
    if referee.mode != "gpu":
        return False
    convolutions = any("conv" in op for op in referee.inputs.ops)
    return (convolutions and torch.backends.cudnn.allow_tf32) or (
        products(referee) and torch.backends.cuda.matmul.allow_tf32
    )


def _error_in_tf32(referee: Referee, tree: Any, reference: Reference, train: bool) -> float:
    """What rounding to TF32 does to the answer at ``tree``; 0 where torch does not round at the example's size."""
    if referee.rounds is None:
        referee.rounds = tf32.used(referee.oracle, referee.inputs.example(referee.inputs.example_sizes))
    return tf32.error(referee.oracle, tree, reference, train) if referee.rounds else 0.0


def plainly(tree: Any) -> Any:
    """A tree through the same description as the candidate's, so that a result's own types compare as they came."""
    tensors: list[torch.Tensor] = []
    return channel.rebuild(channel.describe(tree, tensors), tensors)


def identical(a: Any, b: Any) -> bool:
    """Bit for bit the same values, NaN included."""
    mine, theirs = tensors_of(a), tensors_of(b)
    return len(mine) == len(theirs) and all(
        x.shape == y.shape and x.dtype == y.dtype and chunks.identical(x, y) for x, y in zip(mine, theirs, strict=True)
    )

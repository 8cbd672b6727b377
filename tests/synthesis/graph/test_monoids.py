"""Each monoid, followed as data over lanes that see every fourth element, gives what torch gives in float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernel_lsp.synthesis.graph.functions import FUNCTIONS
from kernel_lsp.synthesis.graph.monoids import MONOIDS, Monoid, Term

LANES = 4
NAN, INF = math.nan, math.inf
Elements = list[float]


def _number(function: str, *operands: Any) -> Any:
    """A function of numbers; what Python refuses is what floating point gives."""
    if function in ("maximum", "minimum") and any(o != o for o in operands):
        return NAN
    if function in ("maximum_int", "minimum_int"):
        known = [o for o in operands if o == o]  # Triton's own drop a NaN
        return FUNCTIONS[function].evaluate(*known) if len(known) == 2 else [*known, NAN][0]
    if function == "exp":
        return torch.tensor(operands[0], dtype=torch.float64).exp().item()
    return FUNCTIONS[function].evaluate(*operands)


_FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "prod": math.prod,
    "max": lambda lanes: max([x for x in lanes if x == x], default=NAN),
    "min": lambda lanes: min([x for x in lanes if x == x], default=NAN),
    "amax": lambda lanes: NAN if any(x != x for x in lanes) else max(lanes),
    "amin": lambda lanes: NAN if any(x != x for x in lanes) else min(lanes),
    "logaddexp": lambda lanes: torch.logsumexp(torch.tensor(lanes, dtype=torch.float64), 0).item(),
}


def _computed(term: Term, lanes: list[dict[str, Any]]) -> list[Any]:
    """A term in each lane; what is folded is the same in all."""
    if isinstance(term, str):
        return [lane[term] for lane in lanes]
    if not isinstance(term, tuple):
        return [term] * len(lanes)
    function, *rest = term
    parts = [_computed(part, lanes) for part in rest]
    if function.startswith("fold."):
        return [_FOLDS[function.removeprefix("fold.")](parts[0])] * len(lanes)
    if function == "inside":
        return [a if lane["inside"] else b for lane, a, b in zip(lanes, *parts, strict=True)]
    return [_number(function, *operands) for operands in zip(*parts, strict=True)]


def followed(monoid: Monoid, elements: Elements, about: float | None = None) -> dict[str, Any]:
    """What the monoid gives of ``elements``, each lane taking every fourth and the neutral element beyond the end."""
    lanes: list[dict[str, Any]] = [
        {c.key: i if c.start == "first" else c.start for c in monoid.carried} | {"about": about} for i in range(LANES)
    ]
    for start in range(0, len(elements), LANES):
        for i, lane in enumerate(lanes):
            lane["place"], lane["inside"] = start + i, start + i < len(elements)
            lane["element"] = elements[start + i] if lane["inside"] else monoid.neutral
        for name, term in monoid.enter:
            for lane, value in zip(lanes, _computed(term, lanes), strict=True):
                lane[name] = value
    results = {}
    for name, term in monoid.finish:
        found = _computed(term, lanes)
        results[name] = found[0]
        if name not in monoid.results:
            for lane, value in zip(lanes, found, strict=True):
                lane[name] = value
    return results


def _close(result: float, expected: torch.Tensor | float) -> bool:
    wanted = float(expected)
    return (result != result and wanted != wanted) or result == pytest.approx(wanted, rel=1e-9, abs=1e-12)


_PLAIN = [0.5, -1.0, 3.0, 2.0, 3.0, -4.0, 1.25]
ROWS: dict[str, Elements] = {
    "plain": _PLAIN,
    "short": [1.5, -0.5],
    "far from zero": [1e8 + x for x in _PLAIN],
    "-inf first": [-INF] * 5 + _PLAIN,
    "-inf alone": [-INF] * 6,
    "inf": [*_PLAIN, INF, -1.0, 2.0],
    "nan": [*_PLAIN, NAN, -1.0, 9.0],
}
KINDS = {
    "sum": torch.sum,
    "prod": torch.prod,
    "logaddexp": lambda x: torch.logsumexp(x, 0),
    "amax": torch.amax,
    "amin": torch.amin,
    "argmax": torch.argmax,
    "argmin": torch.argmin,
}


#: logaddexp computes with numbers that are finite; kernels with others have cases of their own
_FOLDED = [(k, r) for k in KINDS for r, x in ROWS.items() if k != "logaddexp" or all(map(math.isfinite, x))]


@pytest.mark.parametrize(("kind", "row"), _FOLDED)
def test_folds(kind: str, row: str) -> None:
    x = torch.tensor(ROWS[row], dtype=torch.float64)
    found = followed(MONOIDS[kind], ROWS[row])["result"]
    assert _close(found, KINDS[kind](x)), found


@pytest.mark.parametrize("row", list(ROWS))
@pytest.mark.parametrize("kind", ["max", "amax"])
def test_the_sum_of_exponentials_is_that_of_a_second_pass(kind: str, row: str) -> None:
    x = torch.tensor(ROWS[row], dtype=torch.float64)
    highest = x.amax()
    found = followed(MONOIDS[f"exponentials_{kind}"], ROWS[row], highest.item())
    assert _close(found["sum"], (x - highest).exp().sum()), found
    if row != "nan":
        assert _close(found["highest"], highest)
    # logsumexp shifts by nothing where the greatest is infinite
    shift = 0.0 if highest.isinf() else highest.item()
    assert _close(followed(MONOIDS[f"exponentials_{kind}"], ROWS[row], shift)["sum"], (x - shift).exp().sum())


@pytest.mark.parametrize("row", list(ROWS))
def test_the_squares_are_those_of_a_second_pass(row: str) -> None:
    x = torch.tensor(ROWS[row], dtype=torch.float64)
    for about in (x.mean().item(), 0.0 if row != "far from zero" else 1e8):
        found = followed(MONOIDS["squares"], ROWS[row], about)["squares"]
        expected = (x - about).square().sum()
        assert _close(found, expected) or (not x.isfinite().all() and found != found), (found, expected)


def test_a_difference_far_from_zero_is_kept() -> None:
    """The sum of squares less the square of the sum would be lost at 1e8 in float64; what is carried is not."""
    x = torch.tensor(ROWS["far from zero"], dtype=torch.float64)
    found = followed(MONOIDS["squares"], ROWS["far from zero"], x.mean().item())["squares"]
    assert found == pytest.approx(x.sub(1e8).var(correction=0).item() * len(x), rel=1e-6)


@pytest.mark.parametrize("row", list(ROWS))
@pytest.mark.parametrize("kind", ["argmax", "argmin", "exponentials_max", "exponentials_amax", "squares"])
def test_what_chunks_carry_on_gives_the_same(kind: str, row: str) -> None:
    monoid, elements = MONOIDS[kind], ROWS[row]
    x = torch.tensor(elements, dtype=torch.float64)
    about = {"squares": x.mean(), "exponentials_max": x.amax(), "exponentials_amax": x.amax()}.get(kind)
    about = about if about is None else about.item()
    keys = [c.key for c in monoid.carried if c.holds != "count"]
    gathering = dataclasses.replace(monoid, finish=monoid.gather, results=tuple(keys))
    cut = len(elements) // 2
    chunks = [followed(gathering, part) | {"about": about} for part in (elements[:cut], elements[cut:])]
    if "best_at" in keys:  # a chunk's places are those of the whole row
        chunks[1]["best_at"] += cut
    for name, term in monoid.finish:
        for chunk, value in zip(chunks, _computed(term, [dict(c) for c in chunks]), strict=True):
            chunk[f"{name}!" if name in monoid.results else name] = value
    for name, value in followed(monoid, elements, about).items():
        if name in monoid.results and not (row == "nan" and name == "highest"):
            assert _close(chunks[0][f"{name}!"], value), (name, chunks[0][f"{name}!"], value)

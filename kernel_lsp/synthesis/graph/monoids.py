"""What folds come to, as data: one entry per monoid. A further one is a further entry, and a lowering that names it.

``Scan.kind``, ``Reduce.kind`` and ``PrefixScan.kind`` are keys of ``MONOIDS``. A *term* is a number, a name, or a function of
``functions.FUNCTIONS`` with its operands: ``("add", "acc", "element")``. Names stand for what is carried, for what a term
before gave, and for

- ``element``: what is folded, the neutral element beyond its end; ``place``: where it stands;
- ``about``: in ``finish``, a value that is known only after the elements were seen.

Beside the functions there are ``("inside", a, b)``, which is ``a`` for an element and ``b`` beyond the end, and ``("fold.sum", a)``,
``("fold.max", a)`` and the like, which fold what each lane of a tile carries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

Term: TypeAlias = "float | str | tuple[Any, ...]"
#: (name, term) in order: what is carried gets a new value, any other name stands for the term from there on
Steps: TypeAlias = "tuple[tuple[str, Term], ...]"


@dataclass(frozen=True)
class Carried:
    """A value that is carried along. ``name``: of its variable, where ``{}`` stands for the result's.

    ``start``: what no elements come to; ``first`` is the place at which a lane begins. ``holds``: "element" for a number as the
    elements are, "place" for a place, "count" for a number that all lanes share. ``formula``: what it is of elements ``{0}``.
    """

    key: str
    name: str
    start: float | str
    holds: str = "element"
    formula: str = ""


@dataclass(frozen=True)
class Monoid:
    """How elements are folded, one after the other in each lane and then across lanes.

    ``neutral``: an element that changes nothing. ``carried``: the values that a fold carries along. ``enter``: what an element
    makes of them, in the order of the elements. ``finish``: what comes of all lanes, in any order; ``results``: which of its
    steps are results. ``gather``: what of all lanes is carried on, where a row
    is cut in chunks whose results are put together like lanes. ``tile``: what is carried of the elements of one tile, ``length`` of them; where it
    is empty, each is folded as ``finish`` folds what is carried. ``alone``: what is carried that is the result where one lane saw all elements. ``scanned``: what a scan is called; ``combine``: the key of ``functions.FUNCTIONS`` for two elements' result;
    ``scan``: Triton's own scan; where it has none, empty: ``tl.associative_scan`` takes ``combine`` as a helper of the generated
    file (``printing/helpers.py``).
    """

    neutral: float
    carried: tuple[Carried, ...]
    enter: Steps
    finish: Steps
    results: tuple[str, ...] = ("result",)
    gather: Steps = ()
    tile: Steps = ()
    alone: str = "acc"
    scanned: str = ""
    combine: str = ""
    scan: str = ""

    @property
    def of_lanes(self) -> tuple[Carried, ...]:
        """What each lane carries for itself."""
        return tuple(one for one in self.carried if one.holds != "count")


#: A place after all others.
_NOWHERE = 2147483647


def _single(neutral: float, combine: str, fold: str, scanned: str = "", scan: str = "") -> Monoid:
    """One value is carried, and combined with each element."""
    return Monoid(
        neutral,
        (Carried("acc", "{}_acc", neutral),),
        (("acc", (combine, "acc", "element")),),
        (("result", (f"fold.{fold}", "acc")),),
        scanned=scanned,
        combine=combine,
        scan=scan,
    )


def _position(neutral: float, better: str, fold: str, *, keeps_nan: bool) -> Monoid:
    """The best element and where it stands, the first of equal ones. The first NaN counts as better than any number."""
    wins: Term = (better, "element", "best")
    greatest: Term = (f"fold.a{fold}" if keeps_nan else f"fold.{fold}", "best")
    best: Term = ("eq", "best", (f"fold.{fold}", "best"))
    if keeps_nan:
        wins = ("or", wins, ("and", ("ne", "element", "element"), ("eq", "best", "best")))
        missing: Term = ("ne", "best", "best")
        best = ("where", ("gt", ("fold.max", ("to_int32", missing)), 0), missing, best)
    place: Term = ("fold.min", ("where", best, "best_at", _NOWHERE))
    return Monoid(
        neutral,
        (
            Carried("best", "best", neutral, formula=f"{fold}({{0}})"),
            Carried("best_at", "best_at", "first", "place", f"arg{fold}({{0}})"),
        ),
        (
            ("better", wins),
            ("best", ("where", "better", "element", "best")),
            ("best_at", ("where", "better", "place", "best_at")),
        ),
        (("result", place),),
        gather=(("best", greatest), ("best_at", place)),
        alone="best_at",
    )


def _finite(name: str) -> Term:
    return ("where", ("eq", ("abs", name), math.inf), 0.0, name)


def _exponentials(maximum: str, fold: str) -> Monoid:
    """The greatest element, and the sum of exp(element - about): the sum so far is for the greatest so far, and rescaled.

    Milakov and Gimelshein, "Online normalizer calculation for softmax" (arXiv 1805.02867). Infinities have no difference: until
    there is something finite the exponentials are those of the elements themselves.
    """
    return Monoid(
        -math.inf,
        (
            Carried("highest", "{highest}_acc", -math.inf, formula="max({0})"),
            Carried("sum", "{sum}_acc", 0.0, formula="sum(exp({0} - max({0})))"),
        ),
        (
            ("reached", (maximum, "highest", "element")),
            ("shift", _finite("reached")),
            (
                "sum",
                ("add", ("mul", "sum", ("exp", ("sub", "highest", "shift"))), ("exp", ("sub", "element", "shift"))),
            ),
            ("highest", "reached"),
        ),
        (
            ("highest", (f"fold.{fold}", "highest")),
            ("sum", ("fold.sum", ("mul", "sum", ("exp", ("sub", "highest", "about"))))),
        ),
        results=("highest", "sum"),
        gather=(
            ("top", (f"fold.{fold}", "highest")),
            ("shift", _finite("top")),
            ("highest", "top"),
            ("sum", ("fold.sum", ("mul", "sum", ("exp", ("sub", "highest", "shift"))))),
        ),
        tile=(
            ("top", (f"fold.{fold}", "element")),
            ("shift", _finite("top")),
            ("highest", "top"),
            ("sum", ("fold.sum", ("exp", ("sub", "element", "shift")))),
        ),
    )


#: The sum of (element - about)^2, about the mean or any other number: each lane keeps the mean of its elements and the sum of
#: squares about it (Welford 1962); Chan, Golub and LeVeque 1983 put those of the lanes together.
_SQUARES = Monoid(
    0.0,
    (
        Carried("count", "count", 0.0, "count"),
        Carried("seen", "seen", 0.0, formula="count({0})"),
        Carried("mean", "running_mean", 0.0, formula="mean({0})"),
        Carried("squares", "squares_acc", 0.0, formula="sum(({0} - mean({0}))^2)"),
    ),
    (
        ("count", ("add", "count", 1.0)),
        ("seen", ("inside", "count", "seen")),
        ("delta", ("inside", ("sub", "element", "mean"), 0.0)),
        ("mean", ("add", "mean", ("mul", "delta", ("div", 1.0, "count")))),
        ("squares", ("add", "squares", ("mul", "delta", ("sub", "element", "mean")))),
    ),
    (
        ("apart", ("sub", "mean", "about")),
        ("squares", ("fold.sum", ("add", "squares", ("mul", ("mul", "seen", "apart"), "apart")))),
    ),
    results=("squares",),
    gather=(
        ("elements", ("fold.sum", "seen")),
        ("gathered", ("fold.sum", ("mul", "seen", "mean"))),
        ("average", ("div", "gathered", "elements")),
        ("apart", ("sub", "mean", "average")),
        ("seen", "elements"),
        ("mean", "average"),
        ("squares", ("fold.sum", ("add", "squares", ("mul", ("mul", "seen", "apart"), "apart")))),
    ),
    tile=(
        ("seen", "length"),
        ("gathered", ("fold.sum", "element")),
        ("mean", ("div", "gathered", "length")),
        ("delta", ("inside", ("sub", "element", "mean"), 0.0)),
        ("squares", ("fold.sum", ("mul", "delta", "delta"))),
    ),
)

#: max and min may drop a NaN, where it shows in the result anyway (the shift of a softmax); amax and amin keep it, as torch does.
#: ``…_int``: of integers, where there is none.
MONOIDS: dict[str, Monoid] = {
    "sum": _single(0.0, "add", "sum", "cumsum", "tl.cumsum"),
    "prod": _single(1.0, "mul", "prod", "cumprod", "tl.cumprod"),
    "logaddexp": _single(-math.inf, "logaddexp", "logaddexp", "logcumsumexp"),
    "max": _single(-math.inf, "maximum_int", "max", "cummax"),
    "min": _single(math.inf, "minimum_int", "min", "cummin"),
    "amax": _single(-math.inf, "maximum", "amax", "cummax"),
    "amin": _single(math.inf, "minimum", "amin", "cummin"),
    "argmax": _position(-math.inf, "gt", "max", keeps_nan=True),
    "argmin": _position(math.inf, "lt", "min", keeps_nan=True),
    "argmax_int": _position(-math.inf, "gt", "max", keeps_nan=False),
    "argmin_int": _position(math.inf, "lt", "min", keeps_nan=False),
    "exponentials_max": _exponentials("maximum_int", "max"),
    "exponentials_amax": _exponentials("maximum", "amax"),
    "squares": _SQUARES,
}


def kind_of(kind: str, *, floating: bool) -> str:
    """The key of ``MONOIDS`` for a fold's ``kind``; ``floating``: whether its elements may be NaN."""
    return kind if floating or f"{kind}_int" not in MONOIDS else f"{kind}_int"


def mentions(term: Term, names: set[str]) -> bool:
    """Whether a term has one of the names."""
    if isinstance(term, tuple):
        return any(mentions(part, names) for part in term[1:])
    return term in names

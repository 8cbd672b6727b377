"""The verdicts on a class over time: speedup and error as plots, and what changed from one to the next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_lsp import number_text
from kernel_lsp.errors.surface import adapted
from kernel_lsp.schema import CORRECT
from kernel_lsp.speedup import factor
from kernel_lsp.store.changes import said
from kernel_lsp.store.history import Entry

from .distribution import grid, grid_line
from .headline import WORDS
from .html import Child, Markup, div, el, percent, section, span, table

HEIGHT = 150  # pixels, of a plot
_SPEEDS = ("over eager", "over torch.compile")
_ERRORS = ("the kernel’s", "eager’s own")


@dataclass
class Series:
    """One line of a plot: a value an entry, None where there is none. ``kind``: the class that gives the colour."""

    name: str
    kind: str
    values: list[float | None]
    words: Callable[[float], str]


def history(entries: Sequence[Entry], title: str = "History", earlier: bool = False) -> Markup:
    """The card of one class."""
    speeds = [
        Series(_SPEEDS[0], "kernel", [number_text.known(e.over_eager) for e in entries], factor),
        Series(_SPEEDS[1], "compiled", [number_text.known(e.over_compiled) for e in entries], factor),
    ]
    errors = [
        Series(_ERRORS[0], "kernel", [number_text.known(e.error) for e in entries], number_text.error),
        Series(_ERRORS[1], "eager", [number_text.known(e.eager_error) for e in entries], number_text.error),
    ]
    count = (
        f"The last {len(entries)} verdicts" if earlier else f"{len(entries)} verdict{'s' if len(entries) != 1 else ''}"
    )
    hint = f"{count} in the store, the oldest first. Dashed lines: something changed. * Imported from another machine."
    return section(
        title,
        _plot("Speedup", entries, speeds, 1.0),
        _plot("Largest error against float64", entries, errors, None),
        table(_HEAD, [_row(entry, i == 0 and not earlier) for i, entry in enumerate(entries)], (2, 3, 4, 5, 6)),
        hint=hint,
    )


_HEAD = ("when", "result", "× eager", "× torch.compile", "µs", "error", "eager’s error", "checks", "what changed")


def _row(entry: Entry, first: bool) -> list[Child]:
    correct = entry.status in CORRECT
    versions = f"{entry.device}, torch {entry.torch}, Triton {entry.triton}"
    changed = versions if first else said(entry.changed)
    skipped = f", {entry.skipped} skipped" if entry.skipped else ""
    return [
        number_text.moment(entry.reached_at) + ("" if entry.here else " *"),
        span("verdict good" if correct else "verdict bad", WORDS.get(entry.status, entry.status)),
        factor(entry.over_eager) if number_text.known(entry.over_eager) and entry.over_eager else "–",
        factor(entry.over_compiled) if number_text.known(entry.over_compiled) and entry.over_compiled else "–",
        f"{entry.kernel:.1f}" if entry.kernel is not None else "–",
        number_text.error(entry.error) if entry.error is not None else "–",
        number_text.error(entry.eager_error) if entry.eager_error is not None else "–",
        f"{entry.passed} of {entry.passed + entry.failed}{skipped}",
        [changed, el("p", adapted(entry.reason), class_="reason") if entry.reason else None],
    ]


def _plot(title: str, entries: Sequence[Entry], series: Sequence[Series], roof: float | None) -> Markup | None:
    """Values on a logarithmic scale, one column an entry. None where fewer than two can be drawn."""
    values = [value for one in series for value in one.values if value is not None]
    if len([value for value in series[0].values if value is not None]) < 2:
        return None
    values += [roof] if roof is not None else []
    first, last = math.log(min(values)), math.log(max(values))
    room = 0.08 * max(last - first, 0.5)
    first, last = first - room, last + room

    def y(value: float) -> float:
        return (last - math.log(value)) / (last - first)

    shapes = [grid_line(y(at), f"{at:.4g}×" if roof is not None else f"{at:.0e}") for at in _grid(first, last, roof)]
    if roof is not None:
        shapes.append([el("line", x1="0", x2="100%", y1=percent(y(roof)), y2=percent(y(roof)), class_="roof")])
    shapes += [_change(entry, i, len(entries)) for i, entry in enumerate(entries)]
    shapes += [_line(one, entries, y) for one in series]
    names = [span(f"key {one.kind}", one.name) for one in series if any(one.values)]
    picture = el("svg", el("title", title), shapes, height=HEIGHT, role="img", class_="plane speedups")
    return div("shape", el("h3", title, ": ", names), picture)


def _grid(first: float, last: float, roof: float | None) -> list[float]:
    if roof is not None:
        return grid(math.exp(first), math.exp(last))
    tens = math.log(10)
    return [10.0**power for power in range(math.ceil(first / tens), math.floor(last / tens) + 1)]


def _x(i: int, count: int) -> str:
    return percent((i + 0.5) / count)


def _change(entry: Entry, i: int, count: int) -> list[Markup]:
    if not entry.changed:
        return []
    at = percent(i / count)
    return [el("line", el("title", said(entry.changed)), x1=at, x2=at, y1="0", y2="100%", class_="gap")]


def _line(series: Series, entries: Sequence[Entry], y: Callable[[float], float]) -> list[Markup]:
    """Points, joined where they follow one another among those that were measured."""
    known = [(i, value) for i, value in enumerate(series.values) if value is not None]
    count = len(entries)
    shapes = [
        el("line", x1=_x(i, count), y1=percent(y(a)), x2=_x(j, count), y2=percent(y(b)), class_=f"curve {series.kind}")
        for (i, a), (j, b) in itertools.pairwise(known)
    ]
    for i, value in known:
        says = f"{number_text.moment(entries[i].reached_at)}: {series.words(value)} {series.name}"
        point = el("circle", cx=_x(i, count), cy=percent(y(value)), r="4", class_=f"bar {series.kind}")
        shapes.append(el("g", el("title", says), point))
    return shapes

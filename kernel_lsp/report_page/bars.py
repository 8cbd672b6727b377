"""Horizontal bars with their spread. Lengths are shares of the width, so type keeps its size at any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .html import Child, Markup, div, el, percent, span


@dataclass
class Bar:
    """One row. ``value`` and the spread are in the chart's own unit; None draws no bar."""

    label: str
    kind: str  # the class that gives the colour
    value: float | None
    text: Child  # beside the bar: the figure, or why there is none
    low: float | None = None
    high: float | None = None
    start: float = 0.0
    aside: str = ""  # a further figure in the last column
    minor: bool = False
    says: str = ""  # for who cannot see the bar


def chart(
    bars: Sequence[Bar], greatest: float, ticks: Sequence[tuple[float, str]], roof: float | None = None
) -> Markup:
    """Rows of label, bar, figure and further figure, over an axis. ``roof`` draws a line that should not be crossed."""
    reach = greatest or 1.0
    marks = [
        el("line", x1=percent(at / reach), x2=percent(at / reach), y1="0", y2="100%", class_="grid") for at, _ in ticks
    ]
    if roof is not None:
        marks.append(el("line", x1=percent(roof / reach), x2=percent(roof / reach), y1="0", y2="100%", class_="roof"))
    rows = [_row(bar, reach, marks) for bar in bars]
    labels = [
        el("text", words, x=percent(at / reach), y="12", class_="tick", text_anchor=_anchor(at / reach))
        for at, words in ticks
    ]
    axis = el("svg", labels, width="100%", height="18", aria_hidden="true")
    return div("bars", rows, div("row axis", span("label"), div("track", axis), span("value"), span("aside")))


def _row(bar: Bar, reach: float, marks: list[Markup]) -> Markup:
    height, top, thick = (16, 5, 6) if bar.minor else (28, 7, 14)
    shapes = list(marks)
    if bar.value is not None:
        width = max(bar.value - bar.start, 0) / reach
        at = percent(bar.start / reach)
        shapes.append(el("rect", x=at, y=top, width=percent(width), height=thick, rx="2", class_=f"bar {bar.kind}"))
        if bar.low is not None and bar.high is not None:
            shapes += _whisker(bar.low / reach, bar.high / reach, top + thick / 2, thick / 2 - 1)
    picture = el("svg", el("title", bar.says), shapes, width="100%", height=height, role="img")
    return div(
        "row minor" if bar.minor else "row",
        span("label", bar.label),
        div("track", picture),
        span("value", bar.text),
        span("aside", bar.aside),
    )


def _whisker(low: float, high: float, middle: float, half: float) -> list[Markup]:
    across = el("line", x1=percent(low), x2=percent(high), y1=f"{middle:g}", y2=f"{middle:g}", class_="whisker")
    top, bottom = f"{middle - half:g}", f"{middle + half:g}"
    ends = [el("line", x1=percent(x), x2=percent(x), y1=top, y2=bottom, class_="whisker") for x in (low, high)]
    return [across, *ends]


def _anchor(share: float) -> str:
    return "start" if share < 0.03 else "end" if share > 0.97 else "middle"

"""The speedups of a suite as one picture: sorted bars on a logarithmic scale, from 1× up or down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_lsp import number_text
from kernel_lsp.speedup import factor

from .html import Markup, el, percent

HEIGHT = 260  # pixels
_LEAST = 0.004  # of the height: a bar of 1.00× is still seen
_STEPS = (2.0, 4.0, 10.0, 100.0, 1000.0, 1e6)  # the finest grid that has few lines wins
_LINES = 8
_FEW = 24  # fewer bars are as wide as of so many


@dataclass
class Point:
    """One problem: how many times faster, and where its report is."""

    name: str
    speedup: float
    href: str | None = None


def distribution(points: Sequence[Point], what: str) -> Markup:
    """Every point as a bar, the fastest first, each a link to its report. There has to be one that can be drawn."""
    order = sorted((p for p in points if number_text.known(p.speedup)), key=lambda p: (-p.speedup, p.name))
    first = math.log(min(1.0, order[-1].speedup))
    last = math.log(max(1.0, order[0].speedup))
    room = 0.04 * max(last - first, 0.2)
    first, last = first - room, last + room

    def y(ratio: float) -> float:
        return (last - math.log(ratio)) / (last - first)

    faster = sum(p.speedup > 1 for p in order)
    title = f"Speedup over {what} of {len(order)} problems: {faster} are faster, {len(order) - faster} are not"
    return el(
        "svg",
        el("title", title),
        [grid_line(y(ratio), f"{ratio:.4g}×") for ratio in grid(math.exp(first), math.exp(last))],
        [_bar(point, i, max(len(order), _FEW), y) for i, point in enumerate(order)],
        el("line", x1="0", x2="100%", y1=percent(y(1.0)), y2=percent(y(1.0)), class_="roof"),
        height=HEIGHT,
        role="img",
        class_="plane speedups",
    )


def grid(least: float, greatest: float) -> list[float]:
    """Powers of one step between the two, 1× among them."""
    for step in _STEPS:
        reach = range(math.ceil(math.log(least, step)), math.floor(math.log(greatest, step)) + 1)
        if len(reach) <= _LINES:
            break
    return [step**power for power in reach]


def grid_line(at: float, words: str) -> list[Markup]:
    """A line across at a share of the height, with its value beside it."""
    place = percent(at)
    return [
        el("line", x1="0", x2="100%", y1=place, y2=place, class_="grid"),
        el("text", words, x="0", dx="-8", y=place, dy="4", text_anchor="end", class_="tick"),
    ]


def _bar(point: Point, i: int, count: int, y: Callable[[float], float]) -> Markup:
    """A bar, and behind it its whole column, so that a short bar can be pointed at as well."""
    top, bottom = sorted((y(point.speedup), y(1.0)))
    width, gap = 1 / count, 0.15 / count if count <= 200 else 0.0
    column = el("rect", x=percent(i * width), width=percent(width), y="0", height="100%", class_="hit")
    kind = "kernel" if point.speedup > 1 else "slower"
    bar = el(
        "rect",
        x=percent(i * width + gap / 2),
        width=percent(width - gap),
        y=percent(top),
        height=percent(max(bottom - top, _LEAST)),
        class_=f"bar {kind}",
    )
    return el("a", el("title", f"{point.name}: {factor(point.speedup)}"), column, bar, href=point.href)

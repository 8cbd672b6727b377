"""Where the kernel stands against what the device can do: a roofline where there are products, else its bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_lsp import number_text
from kernel_lsp.schema import Device, ShapeMeasurement, Timing

from .bars import Bar, chart
from .facts import Facts
from .html import Markup, details, div, el, percent, section, table

TITLE = "Against what the device can do"
HEIGHT = 300  # of the roofline, in pixels
LABEL = 19  # pixels from one label to the next
ROWS = (
    ("kernel", "kernel", ("kernel", "kernel_graph")),
    ("torch.compile", "compiled", ("compiled",)),
    ("eager", "eager", ("eager", "eager_graph")),
)


def roofline(facts: Facts) -> Markup | None:
    """A picture of every set of shapes; None where there is nothing to draw, of which ``why_none`` tells."""
    measurement, device = facts.measurement, facts.measured_on
    shapes = measurement.shapes if measurement is not None else []
    if all(_why_not(shape, device) is not None for shape in shapes):
        return None
    return section(TITLE, [_shape(shape, device, len(shapes) > 1) for shape in shapes])


def why_none(facts: Facts) -> str:
    """Why there is no such picture, as a sentence; "" where there is one, or nothing was timed."""
    measurement = facts.measurement
    reasons = [_why_not(shape, facts.measured_on) for shape in (measurement.shapes if measurement is not None else [])]
    said = next((reason for reason in reasons if reason), "")
    return f"No roofline: {said}" if said and None not in reasons else ""


def _shape(shape: ShapeMeasurement, device: Device | None, named: bool) -> Markup:
    head = el("h3", ", ".join(map(number_text.tensor, shape.inputs))) if named else None
    bandwidth = number_text.known(device.copy_bandwidth) if device is not None else None
    rate = number_text.known(device.matmul_rate) if device is not None else None
    times = _times(shape)
    if (why := _why_not(shape, device)) is not None:
        return div("shape", head, el("p", why or "nothing was timed", class_="nothing"))
    assert shape.bytes is not None and bandwidth is not None
    if not number_text.known(shape.flops) or rate is None:
        return div("shape", head, _bandwidth(shape, shape.bytes, times, bandwidth, rate))
    assert shape.flops is not None
    return div("shape", head, _chart(shape, Roof(bandwidth, rate, shape.flops / shape.bytes), shape.flops, times))


def _times(shape: ShapeMeasurement) -> dict[str, Timing]:
    """The faster of called and replayed, as the shares of the roofline are reckoned."""
    found = {}
    for label, _, fields in ROWS:
        there = [timing for name in fields if (timing := number_text.timed(getattr(shape, name))) is not None]
        if there:
            found[label] = min(there, key=lambda timing: timing.median)
    return found


def _why_not(shape: ShapeMeasurement, device: Device | None) -> str | None:
    """Why a set of shapes has no picture; "" where nothing was timed, None where there is one."""
    if not _times(shape):
        return ""
    if device is None or number_text.known(device.copy_bandwidth) is None:
        return "the device’s own rates were not recorded."
    if number_text.known(shape.bytes):
        return None
    return (
        "how many bytes a call has to move cannot be told from the shapes, for instance because only a part of an input "
        "is read."
    )


# A module without products: memory is all there is to be limited by.


def _bandwidth(
    shape: ShapeMeasurement, count: int, times: dict[str, Timing], bandwidth: float, rate: float | None
) -> Markup:
    bars = []
    for label, kind, _ in ROWS:
        if label not in times:
            continue
        reached = count / (times[label].median * 1e-6)
        share = reached / bandwidth
        figure = number_text.share(share)
        says = f"{label}: {figure} of the copy bandwidth, {number_text.si(reached, 'B/s')}"
        bars.append(Bar(label, kind, share, el("b", figure), aside=number_text.si(reached, "B/s"), says=says))
    reach = 1.04 * max(1.0, *(bar.value for bar in bars if bar.value is not None))
    ticks = [(at / 4, f"{25 * at} %") for at in range(5)]
    if shape.flops == 0:
        why = "There are no matrix products in it, so memory is the limit."
    elif shape.flops is None:
        why = "How many operations a call needs is not known, so it is held against memory alone."
    else:
        why = "The device’s rate of matrix products is not known, so it is held against memory alone."
    text = (
        f"{why} A call has to move at least {number_text.size(count)}; the bars show how much of the bandwidth that a plain "
        f"copy reaches here ({number_text.si(bandwidth, 'B/s')}, the line at 100 %) is put to that use. Longer is better."
    )
    return Markup(chart(bars, reach, ticks, roof=1.0) + el("p", text, class_="hint"))


# A module with products: both axes logarithmic.


@dataclass
class Roof:
    """What limits a call at an intensity (FLOPs per byte): memory up to the ridge, products from there."""

    bandwidth: float
    rate: float
    intensity: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte from which products are the limit."""
        return self.rate / self.bandwidth

    def at(self, intensity: float) -> float:
        """The greatest rate, in FLOP/s, at an intensity."""
        return min(self.rate, intensity * self.bandwidth)


class Plane:
    """The chart's area in decades."""

    def __init__(self, roof: Roof, reached: list[float]) -> None:
        self.y0 = math.log10(min(*reached, roof.at(roof.intensity)) / 5)
        self.y1 = math.log10(max(*reached, roof.rate) * 1.9)
        self.x0 = self.y0 - math.log10(roof.bandwidth) - 0.1  # the slope begins at the bottom
        point = math.log10(roof.intensity)
        # To the right of the points there has to be room for their labels.
        self.x1 = max(math.log10(roof.ridge) + 0.8, point + (point - self.x0) * 0.56 / 0.44)

    def x(self, intensity: float) -> float:
        """An intensity's place across the chart, from 0 on the left to 1."""
        return (math.log10(intensity) - self.x0) / (self.x1 - self.x0)

    def y(self, rate: float) -> float:
        """A rate's place down the chart, from 0 at the top to 1."""
        return 1 - (math.log10(rate) - self.y0) / (self.y1 - self.y0)


def _chart(shape: ShapeMeasurement, roof: Roof, flops: int, times: dict[str, Timing]) -> Markup:
    reached = {label: flops / (timing.median * 1e-6) for label, timing in times.items()}
    plane = Plane(roof, list(reached.values()))
    x, top = plane.x(roof.intensity), roof.at(roof.intensity)
    said = [
        f"{label}: {number_text.si(rate, 'FLOP/s')}, {number_text.share(rate / top)}" for label, rate in reached.items()
    ]
    shapes = [*_grid(plane), *_roof(roof, plane)]
    if "kernel" in reached:
        ends = {"y1": percent(plane.y(top)), "y2": percent(plane.y(reached["kernel"]))}
        shapes.append(el("line", x1=percent(x), x2=percent(x), class_="gap", **ends))
    shapes += _points(plane, x, reached, top)
    picture = el(
        "svg",
        el("title", "Roofline: " + "; ".join(said)),
        el(
            "desc",
            f"{number_text.digits(roof.intensity)} FLOPs a byte; {number_text.si(top, 'FLOP/s')} are possible there.",
        ),
        shapes,
        height=HEIGHT,
        role="img",
        class_="plane",
    )
    limit = "memory is" if roof.intensity < roof.ridge else "matrix products are"
    text = (
        f"A call needs {number_text.si(flops, 'FLOP')} and has to move at least {number_text.size(shape.bytes or 0)}: "
        f"{number_text.digits(roof.intensity)} FLOPs a byte, where {limit} the limit "
        f"({number_text.si(top, 'FLOP/s')}). The lines are what a plain copy and plain "
        "matrix products reach on this device; the shares are of the line above the points."
    )
    rows = [[label, number_text.si(rate, "FLOP/s"), number_text.share(rate / top)] for label, rate in reached.items()]
    figures = details("The figures as a table", table(["", "reached", "of the roofline"], rows, (1, 2)))
    return Markup(picture + el("p", text, class_="hint") + figures)


def _grid(plane: Plane) -> list[Markup]:
    shapes = []
    for decade in range(math.ceil(plane.x0), math.floor(plane.x1) + 1):
        at = percent(plane.x(10.0**decade))
        shapes.append(el("line", x1=at, x2=at, y1="0", y2="100%", class_="grid"))
        words = f"{10.0**decade:g}"
        shapes.append(el("text", words, x=at, y="100%", dy="18", text_anchor="middle", class_="tick"))
    for decade in range(math.ceil(plane.y0), math.floor(plane.y1) + 1):
        at = percent(plane.y(10.0**decade))
        shapes.append(el("line", x1="0", x2="100%", y1=at, y2=at, class_="grid"))
        words = number_text.si(10.0**decade, "FLOP/s").replace(".00", "").replace(".0", "")
        shapes.append(el("text", words, x="0", dx="-8", y=at, dy="4", text_anchor="end", class_="tick"))
    shapes.append(el("text", "FLOPs a byte", x="50%", y="100%", dy="38", text_anchor="middle", class_="tick"))
    return shapes


def _roof(roof: Roof, plane: Plane) -> list[Markup]:
    x0, y0 = plane.x(10**plane.y0 / roof.bandwidth), 1.0  # where the slope enters the area
    x1, y1 = plane.x(roof.ridge), plane.y(roof.rate)
    return [
        el("line", x1=percent(x0), y1=percent(y0), x2=percent(x1), y2=percent(y1), class_="roof"),
        el("line", x1=percent(x1), y1=percent(y1), x2="100%", y2=percent(y1), class_="roof"),
        el(
            "text",
            f"copies {number_text.si(roof.bandwidth, 'B/s')}",
            x=percent(x0),
            dx="22",
            y="100%",
            dy="-9",
            class_="said",
        ),
        el(
            "text",
            f"products {number_text.si(roof.rate, 'FLOP/s')}",
            x="100%",
            y=percent(y1),
            dy="-9",
            text_anchor="end",
            class_="said",
        ),
    ]


def _points(plane: Plane, x: float, reached: dict[str, float], top: float) -> list[Markup]:
    """Markers of different form, and labels beside them that are moved apart where they would lie on each other."""
    order = sorted(reached, key=lambda label: reached[label], reverse=True)
    places: dict[str, float] = {}
    floor = -float(LABEL)
    for label in order:
        floor = max(plane.y(reached[label]) * HEIGHT, floor + LABEL)
        places[label] = floor
    kinds = {label: kind for label, kind, _ in ROWS}
    shapes = []
    for label in reversed(order):
        y = plane.y(reached[label]) * HEIGHT
        kind = kinds[label]
        shapes.append(_marker(kind, percent(x), y))
        words = f"{label} {number_text.share(reached[label] / top)}"
        shapes.append(
            el(
                "text",
                words,
                x=percent(x),
                dx="18",
                y=f"{places[label]:.1f}",
                dy="4",
                class_=f"said {kind}",
            )
        )
    return shapes


def _marker(kind: str, x: str, y: float) -> Markup:
    """A full circle for the kernel, a ring for torch.compile, a bar for eager."""
    if kind == "kernel":
        return el("circle", cx=x, cy=f"{y:.1f}", r="6", class_="bar kernel")
    if kind == "compiled":
        return el("circle", cx=x, cy=f"{y:.1f}", r="7", class_="ring compiled")
    inner = el("rect", x="-9", y="-2", width="18", height="4", class_="bar eager")
    return el("svg", inner, x=x, y=f"{y:.1f}", class_="mark")

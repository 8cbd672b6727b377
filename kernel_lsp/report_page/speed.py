"""How long a call takes: eager, torch.compile and the kernel at each set of shapes, with their spread."""

from __future__ import annotations

from kernel_lsp import number_text
from kernel_lsp.errors.surface import adapted
from kernel_lsp.schema import Measurement, ShapeMeasurement, Timing
from kernel_lsp.speedup import factor

from .bars import Bar, chart
from .facts import Facts
from .html import Markup, details, div, el, section, table
from .roofline import why_none

#: Rows of a chart: the field of a ShapeMeasurement, its name, its colour, and whether it is a further figure.
ROWS = (
    ("eager", "eager", "eager", False),
    ("eager_graph", "… replayed", "eager", True),
    ("compiled", "torch.compile", "compiled", False),
    ("kernel", "kernel", "kernel", False),
    ("kernel_graph", "… replayed", "kernel", True),
)

#: kernels that are named
_MOST_SPANS = 6


def speed(facts: Facts) -> Markup:
    """The bars of every set of shapes. There have to be some: ``facts.timed``."""
    measurement = facts.measurement
    assert measurement is not None
    parts = [_shape(shape, measurement) for shape in measurement.shapes]
    missing = [*_missing(measurement), *([adapted(measurement.missing).rstrip(".")] if measurement.missing else [])]
    notes = [f"Not measured: {'; '.join(missing)}."] if missing else []
    notes += [why] if (why := why_none(facts)) else []
    notes.append("Bars are medians; the whiskers reach from the 20th to the 80th percentile. Shorter is better.")
    if any(timed is not None for s in measurement.shapes for timed in (s.kernel_graph, s.eager_graph)):
        notes.append("Replayed: the same call from a CUDA graph, without the time that Python takes to launch it.")
    return section(
        "Time of one call",
        parts,
        el("p", " ".join(notes), class_="hint"),
        _left_out(measurement),
        details("The figures as a table", _table(measurement)),
    )


def _missing(measurement: Measurement) -> list[str]:
    """Which of the three was not timed, why, and at how many of the sets of shapes."""
    found = []
    for name, label in (("kernel", "the kernel"), ("compiled", "torch.compile"), ("eager", "eager")):
        count = sum(number_text.timed(getattr(shape, name)) is None for shape in measurement.shapes)
        of = f" at {count} of {len(measurement.shapes)} sets of shapes" if count < len(measurement.shapes) else ""
        why = (
            adapted(measurement.compiled_missing).removeprefix("torch.compile: ").rstrip(".")
            if name == "compiled"
            else ""
        )
        found += [f"{label}{of}{f' ({why})' if why else ''}"] if count else []
    return found


def _left_out(measurement: Measurement) -> list[Markup]:
    """The recorded shapes that were not timed."""
    mix = measurement.recorded
    if mix is None or not mix.left_out:
        return []
    return [el("p", f"Recorded from {mix.source} and not timed: {'; '.join(mix.left_out)}.", class_="hint")]


def _shape(shape: ShapeMeasurement, measurement: Measurement) -> Markup:
    timings = {name: number_text.timed(timing) for name, _, _, _, timing in _rows(shape)}
    there = [timing for timing in timings.values() if timing is not None]
    unit = number_text.Microseconds([timing.median for timing in there])
    reach = 1.02 * max((timing.high for timing in there), default=1.0)
    bars = []
    for name, label, kind, minor, _ in _rows(shape):
        timing = timings[name]
        if timing is None:  # the note below the charts says so
            continue
        says = f"{label}: {unit(timing.median)}, from {unit(timing.low)} to {unit(timing.high)}"
        text = [el("b", unit(timing.median)) if not minor else unit(timing.median)]
        aside = _ratio(timing, timings["kernel"]) if kind in ("eager", "compiled") and not minor else ""
        bars.append(Bar(label, kind, timing.median, text, timing.low, timing.high, aside=aside, minor=minor, says=says))
    marks = [(at, unit.tick(at)) for at in number_text.ticks(reach)] if there else []
    return div(
        "shape",
        el("h3", ", ".join(map(number_text.tensor, shape.inputs)) or "Inputs not recorded", _calls(shape, measurement)),
        chart(bars, reach, marks) if bars else None,
        _kept(shape),
        _spans(shape),
    )


def _calls(shape: ShapeMeasurement, measurement: Measurement) -> str:
    """As in `` · 12,000 calls in train.py``; nothing where calls were not counted."""
    if not shape.calls:
        return ""
    where = f" in {measurement.recorded.source}" if measurement.recorded and measurement.recorded.source else ""
    return f" · {shape.calls:,} call{'s' if shape.calls != 1 else ''}{where}"


def _rows(shape: ShapeMeasurement) -> list[tuple[str, str, str, bool, Timing | None]]:
    """ROWS with their timings; the other modes of torch.compile, where they were timed, come after its default."""
    rows = []
    for name, label, kind, minor in ROWS:
        rows.append((name, label, kind, minor, getattr(shape, name)))
        if name == "compiled":
            modes = shape.compiled_modes.items()
            rows += [(f"compiled {mode}", f"… {mode}", kind, False, timing) for mode, timing in modes]
    return rows


def _kept(shape: ShapeMeasurement) -> list[Markup]:
    """Which times were not taken beside the kernel."""
    names = {"eager": "eager", "default": "torch.compile"}
    return [
        el("p", f"{names.get(mode, mode)}: {number_text.stop(mark)}", class_="hint")
        for mode, mark in shape.kept.items()
    ]


def _spans(shape: ShapeMeasurement) -> list[Markup]:
    """Which GPU kernels take the time of a call of the kernel, the longest first."""
    each = sorted(shape.spans.items(), key=lambda item: -item[1])
    if not each:
        return []
    said = ", ".join(f"{name} {took:.1f} µs" for name, took in each[:_MOST_SPANS])
    more = f" and {len(each) - _MOST_SPANS} more" if len(each) > _MOST_SPANS else ""
    return [el("p", f"In one call of the kernel the GPU runs {said}{more}, by the profiler.", class_="hint")]


def _ratio(timing: Timing, kernel: Timing | None) -> str:
    return f"{factor(timing.median / kernel.median)} the kernel’s" if kernel is not None else ""


def _table(measurement: Measurement) -> Markup:
    several = len(measurement.shapes) > 1
    rows = []
    for shape in measurement.shapes:
        inputs = [", ".join(map(number_text.tensor, shape.inputs)) or "not recorded"] if several else []
        for _, label, kind, minor, timing in _rows(shape):
            called = f"{kind}, replayed" if minor else label.replace("…", "torch.compile")
            if timing is not None:
                cells = [f"{value:.2f}" for value in (timing.median, timing.low, timing.high)]
                rows.append([*inputs, called, *cells, str(timing.runs)])
    head = [*(["inputs"] if several else []), "", "median µs", "20th percentile", "80th percentile", "runs"]
    return table(head, rows, range(len(head) - 4, len(head)))

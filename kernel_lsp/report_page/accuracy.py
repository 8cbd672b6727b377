"""How exact the results are: the kernel's error against float64 beside eager's own, and every check."""

from __future__ import annotations

import math
from collections.abc import Callable

from kernel_lsp import number_text
from kernel_lsp.errors.surface import adapted
from kernel_lsp.schema import Check, Verdict
from kernel_lsp.speedup import error_check_words, example_lines

from .facts import Facts
from .html import Markup, details, div, el, percent, section, span

#: Half the distance from 1 to the next number: what rounding once can cost.
ROUNDING = {"fp64": 2.0**-53, "fp32": 2.0**-24, "bf16": 2.0**-8, **dict.fromkeys(("tf32", "fp16", "half"), 2.0**-11)}


def accuracy(facts: Facts) -> Markup | None:
    """The chart, the checks, and what could not be checked; None where nothing was recorded. There has to be a verdict."""
    verdict = facts.verdict
    assert verdict is not None
    parts = [_chart(verdict), _examples(verdict), checks(verdict), _limits(facts.limits)]
    return section("Exactness", parts) if any(parts) else None


def _chart(verdict: Verdict) -> Markup | None:
    """The kernel's error beside eager's own; None where one of them is not known."""
    if verdict.error is None or verdict.eager_error is None:
        return None
    hint = "Largest relative error against the module computed in float64; further left is better."
    if check := error_check_words(verdict):
        hint += f" The kernel's was in the check “{check}”."
        if verdict.example_error is not None:
            hint += f" On the example inputs it is {number_text.error(verdict.example_error)}."
    if verdict.precision:
        hint += f" Precision: {verdict.precision}."
    errors = {"kernel": verdict.error, "eager": verdict.eager_error}
    drawn = [value for error in errors.values() if (value := number_text.known(error)) is not None]
    rounding = ROUNDING.get(verdict.precision)
    around = [*drawn, *([rounding] if rounding else [])]
    first = math.floor(math.log10(min(around, default=1e-8))) - 1
    last = math.ceil(math.log10(max(around, default=1e-6))) + 1

    def x(value: float) -> float:
        return min(max((math.log10(value) - first) / (last - first), 0.0), 1.0)

    step = max(1, math.ceil((last - first) / 6))
    decades = range(first, last + 1, step)
    marks = [
        el("line", x1=at, x2=at, y1="0", y2="100%", class_="grid") for at in (percent(x(10.0**d)) for d in decades)
    ]
    if rounding:
        at = percent(x(rounding))
        marks.append(el("line", x1=at, x2=at, y1="0", y2="100%", class_="roof"))
    rows = [_row(label, error, x, marks) for label, error in errors.items()]
    return Markup(div("bars", rows, _axis(decades, x, rounding, verdict.precision)) + el("p", hint, class_="hint"))


def _row(label: str, error: float, x: Callable[[float], float], marks: list[Markup]) -> Markup:
    shown, dot = number_text.error(error), []
    if (value := number_text.known(error)) is not None:
        dot = [el("circle", cx=percent(x(value)), cy="14", r="6", class_=f"bar {label}")]
    else:
        shown = "0, exact" if error == 0 else shown
        at = "0" if error == 0 else "100%"
        dot = [el("circle", cx=at, cy="14", r="6", class_=f"bar {label}")]
    picture = el("svg", el("title", f"{label}: {shown}"), marks, dot, width="100%", height="28", role="img")
    return div("row", span("label", label), div("track", picture), span("value", el("b", shown)), span("aside"))


def _axis(decades: range, x: Callable[[float], float], rounding: float | None, precision: str) -> Markup:
    labels = [
        el("text", f"1e{d}", x=percent(x(10.0**d)), y="12", class_="tick", text_anchor=_anchor(x(10.0**d)))
        for d in decades
    ]
    if rounding:
        at = percent(x(rounding))
        labels.append(
            el("text", f"one rounding in {precision}", x=at, y="28", class_="tick", text_anchor=_anchor(x(rounding)))
        )
    picture = el("svg", labels, width="100%", height="34" if rounding else "18", aria_hidden="true")
    return div("row axis", span("label"), div("track", picture), span("value"), span("aside"))


def _anchor(share: float) -> str:
    return "start" if share < 0.03 else "end" if share > 0.97 else "middle"


def checks(verdict: Verdict) -> Markup | None:
    """What failed is open, what passed folded; None where no check was recorded."""
    failed = [check for check in verdict.checks if not check.passed]
    passed = [check for check in verdict.checks if check.passed]
    if not verdict.checks:
        return None
    return Markup(
        (el("ul", [_check(check) for check in failed], class_="checks") if failed else "")
        + (details(f"{len(passed)} checks passed", el("ul", map(_check, passed), class_="checks")) if passed else "")
        + (el("p", f"{len(verdict.skipped)} skipped: {', '.join(verdict.skipped)}.") if verdict.skipped else "")
    )


def _check(check: Check) -> Markup:
    sign = span("good", "✓") if check.passed else span("bad", "✗")
    said = span("visually-hidden", "passed: " if check.passed else "failed: ")
    return el("li", sign, " ", said, el("b", check.name), " ", span("hint", check.detail) if check.detail else None)


def _examples(verdict: Verdict) -> Markup | None:
    """What was found with each of several examples."""
    if not verdict.examples:
        return None
    return div("limits", el("h3", "Examples"), el("ul", [el("li", adapted(line)) for line in example_lines(verdict)]))


def _limits(limits: list[str]) -> Markup | None:
    if not limits:
        return None
    items = [el("li", limit) for limit in limits]
    return div("limits", el("h3", "Not checked here"), el("ul", items))

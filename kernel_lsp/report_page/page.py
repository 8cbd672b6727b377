"""The whole page, and a page of several reports with an index on top."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib import resources

from kernel_lsp import number_text
from kernel_lsp.speedup import factor, speedups

from .accuracy import accuracy
from .bars import Bar, chart
from .candidates import candidates, schedules, sources
from .circumstances import compiled, course, machine, specimen
from .code import side_by_side
from .facts import Facts
from .headline import mark, summary, top
from .history import history
from .html import Child, Markup, cards, details, div, el, filled, section, span, stack, table
from .roofline import roofline
from .speed import speed


def page(facts: Facts) -> str:
    """One report as a whole HTML document."""
    return document(f"{facts.class_name}: Triton kernel", _report(facts))


def pages(reports: Sequence[Facts]) -> str:
    """Several reports as one document: a table of all, then each of them."""
    if len(reports) == 1:
        return page(reports[0])
    each = [el("article", _report(facts, "h2", folded=True), id_=f"report-{i}") for i, facts in enumerate(reports)]
    return document("Triton kernels", [_index(reports), each])


def _report(facts: Facts, level: str = "h1", folded: bool = False) -> Child:
    code = side_by_side(facts) if facts.module_source or facts.kernel_source else None
    source = details("Source: the module and the kernel", code) if folded and code else stack(code)
    if facts.verdict is None:  # nothing was validated, so there is nothing to draw
        about = [specimen(facts.report), machine(facts)] if facts.report is not None and facts.report.specimen else []
        return [
            top(facts, level),
            stack(candidates(facts), schedules(facts), sources(facts)),
            source,
            cards(*about),
        ]
    return [
        top(facts, level, reasons=not folded),  # the index has them where there are several reports
        cards(speed(facts), roofline(facts)) if facts.timed else None,
        cards(accuracy(facts), stack(compiled(facts.verdict), course(facts.report))),
        stack(candidates(facts), schedules(facts), sources(facts)),
        _history(facts),
        source,
        cards(specimen(facts.report), machine(facts)),
    ]


def _history(facts: Facts) -> Markup | None:
    """What was found before; the verdict that the page is about is no history by itself."""
    return div("cards", history(facts.history)) if len(facts.history) > 1 else None


def _index(reports: Sequence[Facts]) -> Child:
    correct = sum(facts.correct for facts in reports)
    rows: list[list[Child]] = []
    for i, facts in enumerate(reports):
        eager, compiler = (number_text.known(ratio) for ratio in speedups(facts.measurement))
        error = facts.verdict.error if facts.verdict is not None else None
        kind, sign, text = summary(facts)
        rows.append(
            [
                el("a", facts.class_name, href=f"#report-{i}"),
                mark(facts.verdict)
                if facts.verdict is not None
                else span(f"verdict {kind}", f"{sign} {text.rstrip('.').lower()}"),
                factor(eager) if eager else "–",
                factor(compiler) if compiler else "–",
                number_text.error(error),
            ]
        )
    head = ["module", "result", "× eager", "× torch.compile", "largest error"]
    return [
        el(
            "header",
            el("h1", "Triton kernels"),
            el("p", f"{correct} of {len(reports)} are correct.", class_="headline"),
        ),
        section("All modules", _speeds(reports), _table(head, rows), _why(reports)),
    ]


def _table(head: list[str], rows: list[list[Child]]) -> Markup:
    """Without the columns that have no figure at all."""
    kept = filled(head, rows, number_text.EMPTY)
    return table([head[i] for i in kept], [[row[i] for i in kept] for row in rows], range(2, len(kept)))


def _why(reports: Sequence[Facts]) -> Markup | None:
    """Why there are modules without a time, each reason once."""
    reasons = dict.fromkeys(facts.not_timed for facts in reports if facts.correct and not facts.timed)
    said = "; ".join(filter(None, reasons))
    return el("p", f"Not timed: {said}.", class_="hint") if said else None


def _speeds(reports: Sequence[Facts]) -> Markup | None:
    """One bar a module: how many times as fast as eager."""
    ratios = [(facts, ratio) for facts in reports if (ratio := number_text.known(speedups(facts.measurement)[0]))]
    if len(ratios) < 2:
        return None
    reach = 1.02 * max(1.0, *(ratio for _, ratio in ratios))
    bars = [
        Bar(f.class_name, "kernel", ratio, el("b", factor(ratio)), says=f"{f.class_name}: {factor(ratio)} eager")
        for f, ratio in ratios
    ]
    ticks = [(at, f"{at:g}×") for at in number_text.ticks(reach)]
    return Markup(
        chart(bars, reach, ticks, roof=1.0) + el("p", "Speed over eager; the line is eager’s own.", class_="hint")
    )


@functools.cache
def style() -> str:
    """The style sheet, as it stands in the page."""
    return resources.files(__package__).joinpath("style.css").read_text("utf-8")


@functools.cache
def policy() -> str:
    """Nothing may be loaded or run; the one style sheet is known by its hash."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def document(title: str, body: Child) -> str:
    """A whole HTML document that loads and runs nothing."""
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy()),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("title", title),
        el("style", Markup(style())),
    ]
    whole = el("html", el("head", head), el("body", el("main", body)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"

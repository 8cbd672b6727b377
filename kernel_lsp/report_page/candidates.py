"""Every candidate of the job with what became of it, and what each source came up with."""

from __future__ import annotations

from kernel_lsp import number_text
from kernel_lsp.errors.surface import adapted
from kernel_lsp.schema import Candidate, Report, Source, Validated
from kernel_lsp.speedup import factor, mix_words, speedups

from . import code
from .facts import Facts
from .headline import mark
from .html import Child, Markup, details, div, el, filled, section, span, table

COLUMNS = ("", "candidate", "result", "time", "× eager")


def candidates(facts: Facts) -> Markup | None:
    """The section with a table row for each candidate, the chosen one included; None where none is known.

    They are known for as long as the session lasts that validated them.
    """
    report = facts.report
    if report is None or not report.candidates:
        return None
    times = [time for validated in report.candidates if (time := _time(validated)) is not None]
    columns = COLUMNS if times else COLUMNS[:3]
    unit = number_text.Microseconds(times)
    bodies = [_entry(i, validated, report, unit, len(columns)) for i, validated in enumerate(report.candidates)]
    head = el("thead", el("tr", [el("th", name, class_="number" if i > 2 else None) for i, name in enumerate(columns)]))
    every = div("wide", el("table", head, bodies, class_="candidates"))
    mixes = [words for validated in report.candidates if (words := mix_words(validated.measurement))]
    note = f"Times are those at the example's shapes; × eager is {mixes[0]}." if mixes else ""
    return section("Candidates", every, el("p", note, class_="hint") if note else None, hint=adapted(report.why))


def _time(validated: Validated) -> float | None:
    shapes = validated.measurement.shapes if validated.measurement is not None else []
    timing = number_text.timed(shapes[0].kernel) if shapes else None
    return timing.median if timing is not None else None


def _entry(i: int, validated: Validated, report: Report, unit: number_text.Microseconds, columns: int) -> Markup:
    """A body of its own with two rows: the figures, in so many columns, and what there is to open."""
    candidate, verdict = validated.candidate, validated.verdict
    time, ratio = _time(validated), number_text.known(speedups(validated.measurement)[0])
    missing = adapted(validated.measurement.missing) if validated.measurement is not None else ""
    line = f" (line {verdict.line})" if verdict.line else ""
    row: list[Child] = [
        str(i + 1),
        el("b", candidate.generator),
        [mark(verdict), span("chosen", "chosen") if i == report.chosen else None],
        unit(time) if time is not None else "–",
        factor(ratio) if ratio and time is not None else "–",
    ]
    cells = [el("td", cell, class_="number" if c > 2 else None) for c, cell in enumerate(row[:columns])]
    reason = number_text.stop(f"{adapted(verdict.reason)}{line}")
    if columns > 3 and time is None and missing and not reason:
        reason = f"Not timed: {missing.rstrip('.')}."
    opened = _opened(validated)
    more = [
        el("p", " · ".join(names), class_="hint") if (names := _names(candidate)) else None,
        el("p", reason, class_="reason") if reason else None,
        div("opened", opened) if opened else None,
    ]
    below = el("tr", el("td"), el("td", more, colspan=columns - 1), class_="more") if any(more) else None
    return el("tbody", el("tr", cells), below, class_="is-chosen" if i == report.chosen else None)


def _names(candidate: Candidate) -> list[str]:
    parts = [candidate.variant, candidate.note]
    if candidate.parent is not None and candidate.narrowed:
        parts.append(f"number {candidate.parent + 1} once more, for the sizes of the example alone")
    elif candidate.parent is not None:
        parts.append(f"made from number {candidate.parent + 1}")
    elif candidate.pinned:
        parts.append("for the sizes of the example alone")
    return [part for part in parts if part]


def _opened(validated: Validated) -> list[Markup]:
    candidate, verdict = validated.candidate, validated.verdict
    found = []
    if candidate.source:
        found.append(details("Source", code.listing(candidate.source, marked=verdict.line)))
    if candidate.answer and not candidate.narrowed:
        found.append(details("What the model answered", el("pre", candidate.answer, class_="answer")))
    if any(not check.passed for check in verdict.checks):
        failed = [el("li", el("b", c.name), " ", span("hint", c.detail)) for c in verdict.checks if not c.passed]
        found.append(details("Checks that failed", el("ul", failed)))
    return found


def schedules(facts: Facts) -> Markup | None:
    """A table of the schedules that were timed together; None where there was one only."""
    tried = facts.report.tried if facts.report is not None else []
    if len(tried) < 2:
        return None
    unit = number_text.Microseconds(
        [one.timing.median for one in tried if number_text.timed(one.timing) and one.timing]
    )
    mixed = any(number_text.known(one.mixed) for one in tried)
    rows: list[list[Child]] = [
        [
            one.variant or "as the rules choose it",
            unit(one.timing.median) if number_text.timed(one.timing) and one.timing else "–",
            *([unit(one.mixed) if one.mixed and number_text.known(one.mixed) else "–"] if mixed else []),
            f"{one.spills} bytes" if one.spills is not None else "–",
            "the fastest by 2 % or more, or the first" if one.fastest else one.reason,
        ]
        for one in tried
    ]
    hint = "Timed beside eager in one process. Each gave what the module gives at the example's sizes."
    hint += " The fastest is the one over the recorded shapes, weighted by calls." if mixed else ""
    head = ["schedule", "time", *(["over the recorded shapes"] if mixed else []), "spilled a thread", ""]
    return section("Schedules", table(head, rows, range(1, len(head) - 1)), hint=hint)


def sources(facts: Facts) -> Markup | None:
    """A table of what each source came up with, where a language model was among them, or should have been."""
    report = facts.report
    if report is None or not any(s.model or s.problem.rstrip(".") not in facts.error for s in report.of_models):
        return None
    head = ["source", "samples", "correct", "best × eager", "tokens", "tokens/s", "seconds"]
    rows = [_source(source) for source in report.sources]
    kept = filled(head, rows, number_text.EMPTY)
    shown = table([head[i] for i in kept], [[row[i] for i in kept] for row in rows], range(1, len(kept) - (6 in kept)))
    problems = [
        el("p", el("b", source.generator), ": ", number_text.stop(source.problem), class_="reason")
        for source in report.sources
        if source.problem
    ]
    return section("Where they came from", shown, problems)


def _source(source: Source) -> list[Child]:
    model = source.model + (f" on {source.device}" if source.device else "") if source.model else ""
    about = [model] if model else []
    about += [f"{len(source.equal_to)} equal to others"] if source.equal_to else []
    about += [f"{source.not_validated} not validated"] if source.not_validated else []
    about += [f"{source.rounds} rounds of repair"] if source.rounds else []
    return [
        [el("b", source.generator), el("p", " · ".join(about), class_="hint") if about else None],
        str(source.samples) + (f" of {source.expected}" if (source.expected or 0) > source.samples else ""),
        str(source.correct),
        factor(source.best) if source.best else "–",
        f"{source.tokens:,}" if source.tokens else "–",
        f"{source.tokens_per_second:.0f}" if source.tokens_per_second else "–",
        ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in source.seconds.items()) or "–",
    ]

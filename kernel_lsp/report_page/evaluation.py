"""The page of a whole suite: its scores, the distribution of speedups, every problem, and a report page of each.

Beside ``<stem>.html`` stands the folder ``<stem>-reports`` with one page per problem that has a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from kernel_lsp import atomic_write, number_text
from kernel_lsp.errors import ReportNotWritten
from kernel_lsp.evaluation import score_texts
from kernel_lsp.evaluation.outcomes import BASELINES, Outcome, report_of
from kernel_lsp.evaluation.records import Record
from kernel_lsp.evaluation.scores import THRESHOLDS, WITHOUT, Scores, latest
from kernel_lsp.speedup import factor

from .distribution import Point, distribution
from .facts import Facts
from .html import Child, Markup, details, div, el, section, span, table
from .page import document, page

_LONGEST = 120  # characters of a file's name


def facts_of(record: Record) -> Facts:
    """What a record alone says of its problem."""
    report = report_of(record)
    if report is None:
        return Facts(record.problem.name, error=record.reason or record.status, module_path=record.problem.path)
    facts = Facts.of_report(report, "" if record.status == "ok" else record.reason)
    facts.class_name, facts.module_path = record.problem.name, record.problem.path
    return facts


def write(
    path: Path, scores: Scores, records: Sequence[Record], facts_for: Callable[[Record], Facts] = facts_of
) -> None:
    """The page at ``path`` and a report page of every record that has a report.

    Raises:
        ReportNotWritten: one of the files cannot be written.
    """
    folder = path.with_name(f"{path.stem}-reports")
    shown = [record for record in latest(records) if report_of(record) is not None]
    files = file_names(shown)
    links = {key: f"{quote(folder.name)}/{quote(name)}" for key, name in files.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if shown:
            folder.mkdir(exist_ok=True)
        for record in shown:
            atomic_write.write(folder / files[_key(record)], page(facts_for(record)))
        atomic_write.write(path, overview(scores, links))
    except OSError as error:
        raise ReportNotWritten(path=str(error.filename or path), detail=error.strerror or error) from None


def _key(record: Record) -> tuple[str, str, str]:
    return record.problem.suite, record.problem.id, record.mode


def file_names(records: Sequence[Record]) -> dict[tuple[str, str, str], str]:
    """(suite, problem id, mode) → a file's name: of plain characters, and no two alike on any file system."""
    several = len({record.mode for record in records}) > 1
    taken: set[str] = set()
    names = {}
    for record in records:
        text = f"{record.problem.id}-{record.mode}" if several else record.problem.id
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:_LONGEST] or "problem"
        name, number = plain, 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.lower())
        names[_key(record)] = f"{name}.html"
    return names


def overview(scores: Scores, links: Mapping[tuple[str, str, str], str]) -> str:
    """The page itself. ``links``: (suite, problem id, mode) → address of the report page."""
    suites = ", ".join(dict.fromkeys(outcome.suite for outcome in scores.outcomes)) or "nothing"
    top = el(
        "header",
        div("eyebrow", "Triton kernels for"),
        el("h1", suites),
        el("p", _headline(scores), class_="headline"),
        [el("p", line, class_="hint") for line in score_texts.about(scores)],
        [el("p", el("strong", "Warning:"), " ", text, class_="banner warn", role="note") for text in scores.warnings],
    )
    cards = [_correct(scores), _fast(scores), _geomeans(scores), _passing(scores)]
    body = [
        top,
        div("cards", _distributions(scores, links)),
        div("cards two", cards[:1], _not_lowered(scores)),
        div("cards", cards[1:]),
        div("cards", _failures(scores, links), _extremes(scores, links), _problems(scores, links)),
    ]
    return document(f"{suites}: Triton kernels", body)


def _headline(scores: Scores) -> str:
    wholes = [group for group in scores.groups if group.level is None]
    parts = []
    for group in wholes:
        mode = f" in {group.mode} mode" if len(wholes) > 1 else ""
        text = f"{group.correct} of {group.problems} are correct{mode}"
        means = [
            f"{factor(mean.speedup)} {score_texts.baseline(against.baseline)}"
            for against in group.against
            if (mean := against.geomeans.get("all")) is not None and mean.speedup
        ]
        parts.append(", ".join([text, *means]) + ".")
    return " ".join(parts) or "No problem was run."


def _correct(scores: Scores) -> Markup | None:
    rows: list[list[Child]] = [
        [
            group.name,
            str(group.problems),
            score_texts.count(group.correct, group.problems),
            score_texts.count(group.correct_1e2, group.problems),
        ]
        for group in scores.groups
    ]
    hint = "Strict: against float64, with eager’s own error as the yardstick. At 1e-2: as most published figures."
    return section("Correct kernels", table(["", "problems", "correct", "at 1e-2"], rows, range(1, 4)), hint=hint)


def _fast(scores: Scores) -> Markup | None:
    rows: list[list[Child]] = []
    for group in scores.groups:
        for against in group.against:
            shares = [score_texts.both(against.fast.get(p), against.fast_1e2.get(p)) for p in THRESHOLDS]
            rows.append([group.name, score_texts.baseline(against.baseline), *shares, str(against.timed)])
    if not rows:
        return None
    hint = "The share of all problems that are correct and more than p times faster; in parentheses, at 1e-2."
    head = ["", "than", *(f"fast_{p}" for p in THRESHOLDS), "correct and timed"]
    return section("fast_p", table(head, rows, range(2, len(head))), hint=hint)


def _geomeans(scores: Scores) -> Markup | None:
    rows: list[list[Child]] = [
        [
            group.name,
            score_texts.baseline(against.baseline),
            *(score_texts.mean(against.geomeans.get(name)) for name in WITHOUT),
        ]
        for group in scores.groups
        for against in group.against
    ]
    if not rows:
        return None
    hint = "Of the correct and timed problems; how many those are stands in parentheses."
    return section("Geometric mean of the speedups", table(["", "over", *WITHOUT], rows, range(2, 5)), hint=hint)


def _passing(scores: Scores) -> Markup | None:
    rows: list[list[Child]] = [
        [one.generator, f"Pass@{k}", score_texts.share(share), str(one.covers[k])]
        for one in scores.passing
        for k, share in one.at.items()
    ]
    hint = "The unbiased estimate (Chen et al. 2021), over the problems with at least k samples."
    return section("Pass@k", table(["generator", "", "share", "problems"], rows, (2, 3)), hint=hint) if rows else None


def _distributions(scores: Scores, links: Mapping[tuple[str, str, str], str]) -> list[Markup]:
    found = []
    modes = sorted({outcome.mode for outcome in scores.outcomes})
    for mode in modes:
        for baseline in BASELINES:
            points = [
                Point(outcome.id, outcome.speedups[baseline], _link(outcome, links))
                for outcome in scores.outcomes
                if outcome.mode == mode and number_text.known(outcome.speedups.get(baseline))
            ]
            if points:
                title = f"Speedup over {score_texts.baseline(baseline)}" + (f", {mode} mode" if len(modes) > 1 else "")
                faster = sum(point.speedup > 1 for point in points)
                hint = f"{faster} of {len(points)} correct and timed problems are faster; each bar is one, and leads to its report."
                found.append(section(title, distribution(points, score_texts.baseline(baseline)), hint=hint))
    return found


def _link(outcome: Outcome, links: Mapping[tuple[str, str, str], str]) -> str | None:
    return links.get((outcome.suite, outcome.id, outcome.mode))


def _named(outcome: Outcome, links: Mapping[tuple[str, str, str], str]) -> Markup:
    href = _link(outcome, links)
    return el("a", outcome.id, href=href) if href else el("span", outcome.id)


def _not_lowered(scores: Scores) -> Markup | None:
    if not scores.not_lowered:
        return None
    rows: list[list[Child]] = [[el("code", op), str(number)] for op, number in scores.not_lowered.items()]
    return section("Not lowered", table(["operator", "problems"], rows, (1,)), hint="These stay with torch.")


def _failures(scores: Scores, links: Mapping[tuple[str, str, str], str]) -> Markup | None:
    """The problems without a kernel, grouped by how they ended; the groups are folded where they are long."""
    places = {(outcome.id, outcome.mode): outcome for outcome in scores.outcomes}
    parts = []
    for failure in scores.failures:
        rows: list[list[Child]] = [
            [_named(places[one.id, one.mode], links), one.reason or span("missing", "no reason was recorded")]
            for one in failure.problems
        ]
        parts.append(details(f"{failure.status}: {len(rows)}", table(["problem", "why"], rows), open_=len(rows) <= 10))
    return section("Without a correct kernel", parts) if parts else None


def _extremes(scores: Scores, links: Mapping[tuple[str, str, str], str]) -> Markup | None:
    places = {(outcome.id, outcome.mode): outcome for outcome in scores.outcomes}
    parts: list[Child] = []
    for name, spread in score_texts.spreads(scores).items():
        rows: list[list[Child]] = [
            [_named(places[one.id, one.mode], links), score_texts.value(name, one.value), one.status, one.reason]
            for one in spread.extremes
        ]
        worst = table(["problem", "", "result", "why"], rows, (1,))
        parts.append(div("shape", el("p", score_texts.spread(name, spread)), details("The worst", worst)))
    if scores.stages:
        stages = ", ".join(f"{stage} {score_texts.seconds(at)}" for stage, at in scores.stages.items())
        parts.append(el("p", f"Stages, median time since the command: {stages}.", class_="hint"))
    return section("Time and memory", parts) if parts else None


def _problems(scores: Scores, links: Mapping[tuple[str, str, str], str]) -> Markup | None:
    if not scores.outcomes:
        return None
    timed = [name for name in BASELINES if any(name in outcome.speedups for outcome in scores.outcomes)]
    several = len({outcome.mode for outcome in scores.outcomes}) > 1
    head = [
        "problem",
        "result",
        *(f"× {score_texts.baseline(name)}" for name in timed),
        "largest error",
        "seconds",
        "remarks",
    ]
    rows: list[list[Child]] = []
    for outcome in scores.outcomes:
        remarks = [outcome.mode] if several else []
        remarks += [outcome.trait] if outcome.trait else []
        remarks += [f"{score_texts.baseline(name)}: {mark}" for name, mark in outcome.marks.items()]
        slow = outcome.speedups.get("eager", 1.0) < 1
        kind, sign = ("warn", "▼") if outcome.correct and slow else ("good", "✓") if outcome.correct else ("bad", "✗")
        rows.append(
            [
                _named(outcome, links),
                span(f"verdict {kind}", f"{sign} {score_texts.result(outcome)}"),
                *(factor(r) if (r := outcome.speedups.get(name)) else "–" for name in timed),
                number_text.error(outcome.error) if outcome.error is not None else "–",
                f"{outcome.seconds:.1f}",
                "; ".join(remarks),
            ]
        )
    return section("Every problem", table(head, rows, range(2, len(head) - 1)))

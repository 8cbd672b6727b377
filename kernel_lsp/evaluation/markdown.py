"""Scores as a Markdown file: what was run where, every table, and one row per problem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernel_lsp.evaluation import score_texts
from kernel_lsp.evaluation.outcomes import BASELINES, Outcome
from kernel_lsp.evaluation.records import Record
from kernel_lsp.evaluation.scores import THRESHOLDS, WITHOUT, Scores
from kernel_lsp.speedup import factor

HINT = (
    "Correct: by the strict standard, held against a float64 oracle with eager's own error as the yardstick; in "
    "parentheses or in its own column: outputs that agree with eager's by atol = rtol = 1e-2. fast_p: the share of all "
    "problems, also of those without a kernel, that are correct and more than p times faster. Speedups are medians over "
    "medians as launched; a geomean covers the correct and timed problems, whose number stands beside it."
)


def text(scores: Scores, records: Sequence[Record], command: str = "") -> str:
    """The whole file. ``command``: that wrote it, as a user would type it."""
    suites = ", ".join(dict.fromkeys(outcome.suite for outcome in scores.outcomes)) or "nothing"
    device = f" on {_cell(next(iter(scores.devices)))}" if len(scores.devices) == 1 else ""
    parts = [f"# {_cell(suites)}{device}", _about(scores, records, command), HINT]
    parts += [f"**Warning:** {_cell(warning)}" for warning in scores.warnings]
    if not scores.outcomes:
        return "\n\n".join([parts[0], "No problem was run."]) + "\n"
    parts += [_correct(scores), _fast(scores), _geomeans(scores), _passing(scores)]
    parts += [_cell(line) for line in score_texts.taken(scores)]
    parts += [_failures(scores), _not_lowered(scores), _extremes(scores), _problems(scores)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(scores: Scores, records: Sequence[Record], command: str) -> str:
    said = [_cell(line) for line in score_texts.about(scores)]
    if len(records) != len(scores.outcomes):
        said.append(f"{score_texts.many(len(records), 'record')} in all.")
    if command:
        said.append(f"Written by {_code(command)}.")
    return " ".join(said)


def _correct(scores: Scores) -> str:
    rows = [
        [
            group.name,
            str(group.problems),
            score_texts.count(group.correct, group.problems),
            score_texts.count(group.correct_1e2, group.problems),
        ]
        for group in scores.groups
    ]
    return _section("Correct kernels", _table(["", "problems", "correct", "correct at 1e-2"], rows, right=1))


def _fast(scores: Scores) -> str:
    rows = []
    for group in scores.groups:
        for against in group.against:
            shares = [score_texts.both(against.fast.get(p), against.fast_1e2.get(p)) for p in THRESHOLDS]
            rows.append([group.name, score_texts.baseline(against.baseline), *shares, str(against.timed)])
    head = ["", "than", *(f"fast_{p}" for p in THRESHOLDS), "correct and timed"]
    return _section("fast_p, and at 1e-2", _table(head, rows, right=2)) if rows else ""


def _geomeans(scores: Scores) -> str:
    rows = [
        [
            group.name,
            score_texts.baseline(against.baseline),
            *(score_texts.mean(against.geomeans.get(name)) for name in WITHOUT),
        ]
        for group in scores.groups
        for against in group.against
    ]
    return _section("Geomean of the speedups", _table(["", "over", *WITHOUT], rows, right=2)) if rows else ""


def _passing(scores: Scores) -> str:
    rows = [
        [
            _cell(one.generator),
            ", ".join(f"Pass@{k} {score_texts.share(value)} ({one.covers[k]})" for k, value in one.at.items()),
            f"{one.correct} of {one.drawn}",
            str(one.problems),
        ]
        for one in scores.passing
    ]
    head = ["generator", "Pass@k (problems with k samples)", "correct samples", "problems"]
    return _section("Pass@k", _table(head, rows, right=2)) if rows else ""


def _failures(scores: Scores) -> str:
    parts = []
    for failure in scores.failures:
        items = [
            f"- {_name(failed.id)}: {_cell(failed.reason or 'no reason was recorded')}" for failed in failure.problems
        ]
        parts.append(f"### {_cell(failure.status)}: {len(items)}\n\n" + "\n".join(items))
    return _section("Without a correct kernel", *parts) if parts else ""


def _not_lowered(scores: Scores) -> str:
    rows = [[_code(op), str(number)] for op, number in scores.not_lowered.items()]
    return _section("Not lowered", _table(["operator", "problems"], rows, right=1)) if rows else ""


def _extremes(scores: Scores) -> str:
    parts = []
    for name, spread in score_texts.spreads(scores).items():
        rows = [
            [_name(one.id), score_texts.value(name, one.value), one.status, _cell(one.reason)]
            for one in spread.extremes
        ]
        parts.append(score_texts.spread(name, spread) + "\n\n" + _table(["problem", "", "result", ""], rows))
    if scores.stages:
        stages = ", ".join(f"{_cell(stage)} {score_texts.seconds(at)}" for stage, at in scores.stages.items())
        parts.append(f"Stages, median time since the command: {stages}.")
    return _section("Time and memory", *parts) if parts else ""


def _problems(scores: Scores) -> str:
    timed = [name for name in BASELINES if any(name in outcome.baselines for outcome in scores.outcomes)]
    head = [
        "problem",
        "result",
        "in Triton",
        "error (eager's)",
        *(f"{score_texts.baseline(name)} µs" for name in timed),
        "kernel µs",
    ]
    head += [f"over {score_texts.baseline(name)}" for name in timed] + ["s", "remarks"]
    several = len({outcome.mode for outcome in scores.outcomes}) > 1
    rows = [_problem(outcome, timed, several) for outcome in scores.outcomes]
    return _section("Every problem", _table(head, rows, right=3, last=1))


def _problem(outcome: Outcome, timed: Sequence[str], several: bool) -> list[str]:
    times = [outcome.baselines.get(name) for name in timed] + [outcome.kernel]
    remarks = [outcome.mode] if several else []
    remarks += [outcome.trait] if outcome.trait else []
    remarks += [f"{score_texts.baseline(name)}: {mark}" for name, mark in outcome.marks.items()]
    remarks += [outcome.reason] if outcome.reason else []
    return [
        _name(outcome.id),
        _cell(score_texts.result(outcome)),
        _name(score_texts.in_triton(outcome)),
        _errors(outcome),
        *(score_texts.NONE if time is None else f"{time:.1f}" for time in times),
        *(score_texts.NONE if (r := outcome.speedups.get(name)) is None else factor(r) for name in timed),
        f"{outcome.seconds:.1f}",
        _cell("; ".join(remarks)),
    ]


def _errors(outcome: Outcome) -> str:
    if outcome.error is None:
        return score_texts.NONE
    return f"{outcome.error:.1e}" + (f" ({outcome.eager_error:.1e})" if outcome.eager_error is not None else "")


def _section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def _table(head: Iterable[str], rows: Iterable[Sequence[str]], right: int = 99, last: int = 0) -> str:
    """``right``: the first column that is set to the right, up to the ``last`` ones."""
    head = list(head)
    rule = ["--:" if right <= i < len(head) - last else "---" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *rows])


def _cell(text: str) -> str:
    """Anybody's text in one line that is no markup: neither a cell's border nor a tag, a link or an emphasis."""
    return re.sub(r"([\\`*_\[\]|<>&~#])", r"\\\1", " ".join(text.split()))


def _name(text: str) -> str:
    """A name: underscores inside words are no emphasis, and names are full of them."""
    return _cell(text).replace(r"\_", "_")


def _code(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", r"\|")

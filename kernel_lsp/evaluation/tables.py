"""Scores for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernel_lsp.evaluation import score_texts
from kernel_lsp.evaluation.records import Record
from kernel_lsp.evaluation.scores import THRESHOLDS, WITHOUT, Against, Scores

_LISTED = 8  # failures of a status, and operators, that a terminal shows; the Markdown file has all
_REASON = 160  # characters of a reason there


def print_scores(scores: Scores, records: Sequence[Record], console: Console) -> None:
    """Everything but the single problems, which only Markdown and the page list. ``records``: those scored."""
    if not scores.outcomes:
        console.print("No problem was run.")
        return
    for table in (_levels(scores), _fast(scores), _geomeans(scores), _passing(scores)):
        if table is not None:
            console.print(table)
    for line in score_texts.taken(scores):
        _say(console, line)
    _failures(scores, console)
    _not_lowered(scores, console)
    _extremes(scores, console)
    for line in score_texts.about(scores):
        _say(console, line, style="dim")
    if len(records) != len(scores.outcomes):
        _say(console, f"{score_texts.many(len(records), 'record')} in all.", style="dim")
    for warning in scores.warnings:
        _say(console, f"Warning: {warning}", style="yellow")


def _say(console: Console, line: str, style: str = "") -> None:
    """A line as it is: names and reasons are anybody's text, never markup."""
    console.print(Text(line, style=style), highlight=False)


def _item(console: Console, line: str, style: str = "") -> None:
    """A line of a list, indented also where it is broken."""
    console.print(Padding(Text(line, style=style), (0, 0, 0, 2)), highlight=False)


def _table(title: str, *columns: str, left: int = 1) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right", overflow="fold")
    return table


def _levels(scores: Scores) -> Table:
    table = _table("Correct kernels", "", "problems", "correct", "at 1e-2")
    for group in scores.groups:
        close = score_texts.count(group.correct_1e2, group.problems)
        table.add_row(group.name, str(group.problems), score_texts.count(group.correct, group.problems), close)
    return table


def _fast(scores: Scores) -> Table | None:
    """One row per group and baseline; by 1e-2 a row of its own, since both would not fit beside each other."""
    columns = [f">{p}×" for p in THRESHOLDS if p != "0"]
    table = _table("fast_p: % of all problems correct and more than p× faster", "", "than", *columns, "timed", left=2)
    for name, against in _pairs(scores):
        shares = [_percent(share) for p, share in against.fast.items() if p != "0"]
        table.add_row(name, score_texts.baseline(against.baseline), *shares, str(against.timed))
        close = [_percent(share) for p, share in against.fast_1e2.items() if p != "0"]
        if close and close != shares:
            table.add_row("", "  at 1e-2", *close, "", style="dim")
    return table if table.row_count else None


def _percent(share: float) -> str:
    return score_texts.share(share).removesuffix(" %")


def _geomeans(scores: Scores) -> Table | None:
    heads = [name.replace("without ", "without\n").replace(" and ", "\nand ") for name in WITHOUT]
    table = _table("Geomean of the speedups (problems it covers)", "", "over", *heads, left=2)
    for name, against in _pairs(scores):
        means = [score_texts.mean(against.geomeans.get(key)) for key in WITHOUT]
        table.add_row(name, score_texts.baseline(against.baseline), *means)
    return table if table.row_count else None


def _pairs(scores: Scores) -> list[tuple[str, Against]]:
    """Every group with each of its baselines; the name of the group in the first row of it alone."""
    return [
        (group.name if i == 0 else "", against) for group in scores.groups for i, against in enumerate(group.against)
    ]


def _passing(scores: Scores) -> Table | None:
    ks = [k for k in ("1", "5", "10", "20", "50", "100") if any(k in one.at for one in scores.passing)]
    if not ks:
        return None
    table = _table("Pass@k in % (unbiased)", "generator", *ks, "samples", "problems")
    for one in scores.passing:
        values = [_percent(one.at[k]) if k in one.at else score_texts.NONE for k in ks]
        table.add_row(escape(one.generator), *values, str(one.drawn), str(one.problems))
    return table


def _failures(scores: Scores, console: Console) -> None:
    if scores.failures:
        total = sum(len(failure.problems) for failure in scores.failures)
        console.print(f"\n[bold]No correct kernel: {score_texts.many(total, 'problem')}[/]", highlight=False)
    for failure in scores.failures:
        console.print(f"[red]{escape(failure.status)}[/]: {len(failure.problems)}", highlight=False)
        for failed in failure.problems[:_LISTED]:
            reason = failed.reason if len(failed.reason) <= _REASON else failed.reason[:_REASON] + "…"
            _item(console, f"{failed.id}: {' '.join(reason.split()) or 'no reason was recorded'}")
        if more := score_texts.exceeded(_LISTED, len(failure.problems)):
            _item(console, more, style="dim")


def _not_lowered(scores: Scores, console: Console) -> None:
    if not scores.not_lowered:
        return
    listed = [f"{op} {number}" for op, number in islice(scores.not_lowered.items(), 3 * _LISTED)]
    more = score_texts.exceeded(len(listed), len(scores.not_lowered))
    console.print("\n[bold]Not lowered, by operator and problems[/]", highlight=False)
    _say(console, ", ".join([*listed, *([more] if more else [])]))


def _extremes(scores: Scores, console: Console) -> None:
    for name, spread in score_texts.spreads(scores).items():
        console.print()
        _say(console, score_texts.spread(name, spread), style="bold")
        for one in spread.extremes:
            why = "" if one.status == "ok" else f" ({one.status})"
            _item(console, f"{score_texts.value(name, one.value)}  {one.id}{why}")
    if scores.stages:
        stages = ", ".join(f"{stage} {score_texts.seconds(at)}" for stage, at in scores.stages.items())
        _say(console, f"Stages, median time since the command: {stages}.")

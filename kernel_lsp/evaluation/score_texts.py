"""The same words for scores in a terminal, in Markdown and on a page."""

from __future__ import annotations

from kernel_lsp import packed_weights
from kernel_lsp.evaluation.outcomes import Outcome, is_stand_in
from kernel_lsp.evaluation.records import NOT_STRICT
from kernel_lsp.evaluation.scores import Geomean, Scores, Spread, name_of
from kernel_lsp.number_text import moment, size
from kernel_lsp.speedup import factor, precision_words

NONE = "–"
MEMORY = {"device": "GPU memory", "host": "host memory"}


def baseline(name: str) -> str:
    """A baseline's name as in tables, such as ``torch.compile`` for ``default``."""
    return name_of(name)


def share(value: float) -> str:
    """``72.4 %``; nothing and everything without decimals."""
    return f"{100 * value:.0f} %" if value in (0, 1) else f"{100 * value:.1f} %"


def both(strict: float | None, close: float | None) -> str:
    """``72.4 % (74.0 %)``: by the strict standard, and by 1e-2 where that was compared."""
    text = share(strict) if strict is not None else NONE
    return f"{text} ({share(close)})" if close is not None else text


def count(number: int | None, of: int) -> str:
    """``181 (72.4 %)``."""
    return f"{number} ({share(number / of)})" if number is not None and of else NONE


def mean(geomean: Geomean | None) -> str:
    """``2.11× (87)``: the geometric mean and how many problems it covers."""
    if geomean is None or geomean.speedup is None:
        return NONE
    return f"{factor(geomean.speedup)} ({geomean.problems})"


def many(number: int, what: str) -> str:
    """``1 problem``, ``2 problems``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def seconds(value: float) -> str:
    """``0.42 s``, ``12.3 s``, ``2 min 05 s``."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 99.95:
        return f"{value:.1f} s"
    return f"{round(value) // 60} min {round(value) % 60:02d} s"


def spread(name: str, of: Spread) -> str:
    """One line, such as ``Time of a problem: median 10.0 s, worst 30.0 s, of 6 problems.``."""
    text = seconds if name == "time" else lambda value: size(round(value))
    what = "Time of a problem" if name == "time" else f"Greatest use of {MEMORY.get(name, name)}"
    return f"{what}: median {text(of.median)}, worst {text(of.worst)}, of {many(of.problems, 'problem')}."


def spreads(scores: Scores) -> dict[str, Spread]:
    """Those that are known of ``time``, ``device`` and ``host``."""
    return ({"time": scores.seconds} if scores.seconds is not None else {}) | scores.memory


def value(name: str, number: float) -> str:
    """One number of a spread: ``time`` in seconds, any other name in bytes."""
    return seconds(number) if name == "time" else size(round(number))


def about(scores: Scores) -> list[str]:
    """Devices, versions and when, one sentence each."""
    lines = []
    if scores.devices:
        lines.append("Device: " + _counted(scores.devices))
    if scores.versions:
        lines.append("; ".join(f"{name} {_counted(seen)}" for name, seen in scores.versions.items()))
    if len(scores.machines) > 1:
        lines.append("Machines: " + _counted(scores.machines))
    if scores.first:
        first, last = moment(scores.first), moment(scores.last)
        lines.append(f"Run: {first}" + (f" to {last}" if last != first else ""))
    modes = sorted({outcome.mode for outcome in scores.outcomes})
    if modes:
        lines.append("Modules in " + " and in ".join(f"{mode} mode" for mode in modes))
    return [f"{line}." for line in lines]


def _counted(seen: dict[str, int]) -> str:
    """The names; with how often each was seen where there are several."""
    return ", ".join(f"{name} ({number})" if len(seen) > 1 else name for name, number in seen.items())


def taken(scores: Scores) -> list[str]:
    """Where the times of the baselines come from, where some are not of this run."""
    lines = []
    for one in scores.taken:
        of_these = f" ({one.beside} of these beside other work on the GPU)" if one.beside else ""
        parts = [f"{many(one.measured, 'time')} measured in this run{of_these}"]
        if one.kept:
            parts.append(f"{one.kept} kept from an earlier one")
        if one.stand_ins:
            marks = "; ".join(mark.removeprefix("stand-in: ") for mark in one.marks if is_stand_in(mark))
            parts.append(f"{many(one.stand_ins, 'stand-in')} ({marks})")
        if len(parts) > 1 or one.beside:
            lines.append(f"{baseline(one.baseline)}: {', '.join(parts)}.")
    return lines


def in_triton(outcome: Outcome) -> str:
    """``12 of 14; torch: cat, dropout``: how many operators the kernel has in Triton, and which torch runs beside it."""
    if outcome.lowered is None:
        return NONE
    torch = f"; torch: {', '.join(outcome.with_torch)}" if outcome.with_torch else ""
    return f"{outcome.lowered} of {outcome.operators}{torch}"


def result(outcome: Outcome) -> str:
    """``ok``, ``ok, slower than eager``, ``wrong, 1e-2 met``, ``not strict (TF32), 2.10× eager, 1e-2 met``, ``ok, packed weights kept``."""
    kept = f", {packed_weights.LABEL}" if outcome.keeps_packed_weights else ""
    if outcome.correct:
        ratio = outcome.speedups.get("eager")
        return ("ok, slower than eager" if ratio is not None and ratio < 1 else "ok") + kept
    status = outcome.status
    if status == NOT_STRICT:
        ratio = outcome.speedups_1e2.get("eager")
        status = f"not strict ({precision_words(outcome.held_to)})" + (f", {factor(ratio)} eager" if ratio else "")
    return (f"{status}, 1e-2 met" if outcome.correct_1e2 else status) + kept


def exceeded(shown: int, total: int) -> str:
    """What to say where a list was cut; "" where it was not."""
    return f"… and {total - shown} more" if total > shown else ""

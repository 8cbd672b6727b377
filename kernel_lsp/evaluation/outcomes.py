"""One problem's record boiled down to what is counted: whether it is correct, its times, what stayed with torch.

Two standards of error. Strict: validation's own verdict. 1e-2: ``Verdict.within_1e2``, which most published figures
use. Times are medians in microseconds at the example inputs (the first of a measurement's shapes).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_lsp import schema
from kernel_lsp.evaluation.records import Record

#: What a kernel is held against: eager, and torch.compile by mode.
BASELINES = ("eager", "default", "reduce-overhead", "max-autotune")
#: Of a kernel that is right by the 1e-2 standard; another failure (a cheat, a crash) is one by any standard.
_MAY_BE_CLOSE = schema.CORRECT | {"wrong"}
_STOPPED_BY = re.compile(r"the first that stopped it is (.+?)(?:: |\. Leave it)")


@dataclass
class Outcome:
    """One problem. ``speedups`` has the baselines that were timed: baseline's median over the kernel's."""

    id: str
    name: str
    suite: str
    mode: str
    level: int | None
    trait: str
    status: str
    reason: str = ""
    correct: bool = False  # by the strict standard
    correct_1e2: bool | None = None  # None where no candidate was compared by that standard
    kernel: float | None = None  # µs, launched
    baselines: dict[str, float] = field(default_factory=dict)  # µs
    speedups: dict[str, float] = field(default_factory=dict)
    speedups_1e2: dict[str, float] = field(default_factory=dict)  # of the fastest kernel that is right by 1e-2
    kept: dict[str, str] = field(default_factory=dict)  # baselines not measured beside the kernel → their mark
    generator: str = ""
    error: float | None = None  # largest relative error against float64
    eager_error: float | None = None
    not_lowered: list[str] = field(default_factory=list)  # ATen operators, "conv2d", "max_pool2d"
    seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)  # stage → seconds since the command
    memory: dict[str, int] = field(default_factory=dict)  # bytes
    device: str = ""
    machine: str = ""
    readable: bool = True  # whether the record's report, if it has one, could be read


def of(record: Record) -> Outcome:
    """What a record says. A report that cannot be read leaves the problem as one without a kernel."""
    problem = record.problem
    outcome = Outcome(
        problem.id, problem.name, problem.suite, record.mode, problem.level, problem.trait, record.status, record.reason
    )
    outcome.seconds, outcome.machine = record.seconds, record.machine
    report = report_of(record)
    outcome.readable = report is not None or record.report is None
    device = report.device.name if report is not None and report.device is not None else ""
    outcome.device = record.versions.get("device", "") or device
    outcome.not_lowered = not_lowered(record, report)
    if report is not None:
        _add_report(outcome, report)
    if record.status == "ok" and not outcome.correct:
        # A record that contradicts itself must not count as a success.
        outcome.status = "no-verdict"
        outcome.reason = outcome.reason or "The record says ok, and has no correct kernel."
    return outcome


def report_of(record: Record) -> schema.Report | None:
    """The report of a record; None where there is none, or one that this version cannot read."""
    try:
        return schema.from_json(schema.Report, record.report)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        return None


def shown(report: schema.Report) -> schema.Judged | None:
    """The candidate that stands for a report: the chosen one, else the fastest correct one, else the first."""
    if report.chosen is not None and 0 <= report.chosen < len(report.candidates):
        return report.candidates[report.chosen]
    correct = [judged for judged in report.candidates if judged.verdict.status in schema.CORRECT]
    return _fastest(correct) or next(iter(report.candidates), None)


def _add_report(outcome: Outcome, report: schema.Report) -> None:
    outcome.stages = {stage: at for stage, at in report.seconds.items() if 0 <= at < math.inf}
    outcome.memory = {kind: count for kind, count in report.memory.items() if count > 0}
    judged = shown(report)
    if judged is not None:
        outcome.correct = outcome.status == "ok" and judged.verdict.status in schema.CORRECT
        outcome.generator = judged.candidate.generator
        outcome.error, outcome.eager_error = judged.verdict.error, judged.verdict.eager_error
        if outcome.correct:
            shape = first_shape(judged)
            outcome.baselines = baselines(shape)
            outcome.kernel = _known(shape.kernel) if shape is not None else None
            outcome.speedups = speedups(shape)
            outcome.kept = dict(shape.kept) if shape is not None else {}
    compared = [entry for entry in report.candidates if entry.verdict.within_1e2 is not None]
    if compared:
        close = [e for e in compared if e.verdict.within_1e2 and e.verdict.status in _MAY_BE_CLOSE]
        outcome.correct_1e2 = bool(close)
        fastest = _fastest(close)
        outcome.speedups_1e2 = speedups(first_shape(fastest)) if fastest is not None else {}


def first_shape(judged: schema.Judged) -> schema.ShapeMeasurement | None:
    return judged.measurement.shapes[0] if judged.measurement is not None and judged.measurement.shapes else None


def baselines(shape: schema.ShapeMeasurement | None) -> dict[str, float]:
    """Medians of what was timed, in microseconds."""
    if shape is None:
        return {}
    timings = {"eager": shape.eager, "default": shape.compiled, **shape.compiled_modes}
    return {name: time for name in BASELINES if (time := _known(timings.get(name))) is not None}


def speedups(shape: schema.ShapeMeasurement | None) -> dict[str, float]:
    """Each baseline's median over the kernel's, both as launched (not replayed from a graph)."""
    kernel = _known(shape.kernel) if shape is not None else None
    ratios = {name: time / kernel for name, time in baselines(shape).items()} if kernel else {}
    return {name: ratio for name, ratio in ratios.items() if 0 < ratio < math.inf}


def _known(timing: schema.Timing | None) -> float | None:
    return timing.median if timing is not None and 0 < timing.median < math.inf else None


def _fastest(entries: Sequence[schema.Judged]) -> schema.Judged | None:
    def time(judged: schema.Judged) -> float:
        shape = first_shape(judged)
        return (_known(shape.kernel) if shape is not None else None) or math.inf

    return min(entries, key=time, default=None)


def not_lowered(record: Record, report: schema.Report | None) -> list[str]:
    """The operators that stayed with torch, each once: of the synthesizer's most complete candidate.

    Variants of one graph keep the same operators; where one keeps fewer, the others are no news. A language model's
    candidates do not say what they keep.
    """
    found: set[str] = set()
    if report is not None:
        keeping = [judged.candidate for judged in report.candidates if judged.candidate.kept]
        own = [judged.candidate for judged in report.candidates if judged.candidate.generator == "synthesizer"]
        if own or keeping:
            fewest = min(own or keeping, key=lambda candidate: sum(candidate.kept.values()))
            found |= set(fewest.kept)
        for source in report.sources:
            found |= set(_STOPPED_BY.findall(source.problem))
    error = record.error or {}
    if error.get("code") == "NothingToLower":
        data = error.get("data") or {}
        found |= {str(data["op"])} if data.get("op") else set(_STOPPED_BY.findall(str(error.get("message", ""))))
    return sorted({op.removeprefix("aten.").removesuffix(".default") for op in found})

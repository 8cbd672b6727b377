"""One problem's record boiled down to what is counted: whether it is correct, its times, what stayed with torch.

Two standards of error. Strict: validation's own verdict. 1e-2: ``Verdict.within_1e2``, which most published figures
use. Times are medians in microseconds at the example inputs (the first of a measurement's shapes).
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kernel_lsp import candidate_notes, schema
from kernel_lsp.evaluation.records import NOT_STRICT, Record

#: What a kernel is held against: eager, and torch.compile by mode.
BASELINES = ("eager", "default", "reduce-overhead", "max-autotune")
#: The trait of a problem whose correct kernel computes a sum or a mean before a linear operation: less work than the module's.
COLLAPSES = "collapses"
#: Of a kernel that is right by the 1e-2 standard; another failure (a cheat, a crash) is one by any standard.
_MAY_BE_CLOSE = schema.CORRECT | {"wrong"}
#: Of several candidates none of which is correct: the status that got furthest stands for the problem.
FURTHEST = ("wrong", "not-drop-in", "cheating", "timeout", "out-of-memory", "crashed", "compile-error", "rejected")
_STOPPED_BY = re.compile(r"the first that stopped it is (.+?)(?:: |\. Leave it)")


@dataclass
class Outcome:
    """One problem. ``speedups`` has the baselines that were timed: baseline's median over the kernel's."""

    id: str
    name: str
    suite: str
    mode: str
    level: int | None
    trait: str  # "constant", as the suite knows it; "collapses" where the correct kernel does; or ""
    status: str
    reason: str = ""
    correct: bool = False  # by the strict standard
    correct_1e2: bool | None = None  # None where no candidate was compared by that standard
    kernel: float | None = None  # µs, launched
    baselines: dict[str, float] = field(default_factory=dict)  # µs
    speedups: dict[str, float] = field(default_factory=dict)
    speedups_1e2: dict[str, float] = field(default_factory=dict)  # of the fastest kernel that is right by 1e-2
    # Baselines that were not measured in this run, or beside other work on the GPU → what is said of their time.
    marks: dict[str, str] = field(default_factory=dict)
    generator: str = ""
    error: float | None = None  # largest relative error against float64
    eager_error: float | None = None
    not_lowered: list[str] = field(default_factory=list)  # ATen operators, "conv2d", "max_pool2d"
    # Of the shown candidate, where its note tells: operators that run in Triton, all, and which of them torch runs.
    lowered: int | None = None
    operators: int | None = None
    with_torch: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)  # stage → seconds since the command
    memory: dict[str, int] = field(default_factory=dict)  # bytes
    device: str = ""
    machine: str = ""
    held_to: str = "strict"  # the precision that the shown kernel was asked for at
    keeps_packed_weights: bool = False  # the shown kernel does, from call to call
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
    if record.status == "ok" and outcome.held_to != "strict":
        outcome.status = NOT_STRICT
    elif record.status == "ok" and not outcome.correct:
        # A record that contradicts itself must not count as a success.
        outcome.status = "no-verdict"
        outcome.reason = outcome.reason or "The record says ok, and has no correct kernel."
    return outcome


def report_of(record: Record) -> schema.Report | None:
    """The report of a record; None where there is none, or one that this version cannot read."""
    if record.report is None:
        return None
    data = dict(record.report)
    for name in ("seconds", "spent", "memory"):
        if isinstance(data.get(name), dict):
            data[name] = {key: item for key, item in data[name].items() if _is_number(item)}
    try:
        report: schema.Report = schema.from_json(schema.Report, data)
        _check_types(report, schema.Report)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        return None
    if report.chosen not in range(len(report.candidates)):
        report.chosen = None
    return report


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _check_types(value: Any, kind: Any) -> None:
    """That data of unknown origin has the types of the schema. None stands for any number that JSON does not have.

    Raises:
        TypeError: it has not.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is not None:
            _check_types(value, next(one for one in inner if one is not type(None)))
    elif dataclasses.is_dataclass(kind):
        if not isinstance(value, typing.cast(type, kind)):
            raise TypeError(f"no {kind}")
        hints = typing.get_type_hints(kind)
        for one in dataclasses.fields(kind):
            _check_types(getattr(value, one.name), hints[one.name])
    elif origin in (list, dict):
        if not isinstance(value, origin):
            raise TypeError(f"no {origin}")
        for item in value.values() if isinstance(value, dict) else value:
            _check_types(item, inner[-1])
    elif kind in (int, float):
        if value is not None and not _is_number(value):
            raise TypeError("no number")
    elif (kind is str or origin is Literal) and not isinstance(value, str):
        raise TypeError("no text")


def shown(report: schema.Report) -> schema.Validated | None:
    """The candidate that stands for a report."""
    index = shown_index(report)
    return report.candidates[index] if index is not None else None


def shown_index(report: schema.Report) -> int | None:
    """Which candidate stands for a report: the chosen one, else the fastest correct one, else the one that got furthest."""
    indices = range(len(report.candidates))
    if report.chosen in indices:
        return report.chosen

    def rank(index: int) -> tuple[int, float]:
        validated = report.candidates[index]
        status = validated.verdict.status
        if status in schema.CORRECT:
            return -1, _kernel_time_at_example(validated)
        return FURTHEST.index(status) if status in FURTHEST else len(FURTHEST), 0.0

    return min(indices, key=rank, default=None)


def _add_report(outcome: Outcome, report: schema.Report) -> None:
    outcome.stages = {stage: at for stage, at in report.seconds.items() if 0 <= at < math.inf}
    outcome.memory = {kind: count for kind, count in report.memory.items() if count > 0}
    validated = shown(report)
    if validated is not None:
        outcome.held_to = validated.verdict.held_to
        outcome.keeps_packed_weights = validated.verdict.keeps_packed_weights
        strict = outcome.held_to == "strict"  # whatever the record says: no other kernel meets the strict standard
        outcome.correct = outcome.status == "ok" and validated.verdict.status in schema.CORRECT and strict
        outcome.generator, note = validated.candidate.generator, validated.candidate.note
        outcome.lowered, outcome.operators = candidate_notes.in_triton(note) or (None, None)
        kept = validated.candidate.kept or candidate_notes.kept(note)
        outcome.with_torch = sorted({_operator(op) for op in kept})
        outcome.error, outcome.eager_error = validated.verdict.error, validated.verdict.eager_error
        if outcome.correct:
            # What this kernel does, not what one could do.
            if not outcome.trait and candidate_notes.collapsed(note):
                outcome.trait = COLLAPSES
            shape = first_shape(validated)
            outcome.baselines = baselines(shape)
            outcome.kernel = _known(shape.kernel) if shape is not None else None
            outcome.speedups = speedups_by_baseline(shape)
            outcome.marks = marks_of(shape.kept) if shape is not None else {}
    compared = [entry for entry in report.candidates if entry.verdict.within_1e2 is not None]
    if compared:
        close = [e for e in compared if e.verdict.within_1e2 and e.verdict.status in _MAY_BE_CLOSE]
        outcome.correct_1e2 = bool(close)
        fastest = _fastest(close)
        outcome.speedups_1e2 = speedups_by_baseline(first_shape(fastest)) if fastest is not None else {}


def first_shape(validated: schema.Validated) -> schema.ShapeMeasurement | None:
    """The times at the example's own shapes, which are measured before the recorded ones."""
    return (
        validated.measurement.shapes[0] if validated.measurement is not None and validated.measurement.shapes else None
    )


def marks_of(marks: dict[str, str]) -> dict[str, str]:
    """A shape's marks without those of times from another process of this run, in which torch.compile is always timed."""
    return {mode: mark for mode, mark in marks.items() if not mark.startswith("measured in another process")}


def is_beside_other_work(mark: str) -> bool:
    """Whether a mark is of a time that was measured in this run while other programs used the GPU."""
    return mark.startswith("measured beside other work")


def is_stand_in(mark: str) -> bool:
    """Whether a mark is of a time from another machine, and not of one that was kept here."""
    return mark.startswith("stand-in")


def baselines(shape: schema.ShapeMeasurement | None) -> dict[str, float]:
    """Medians of what was timed, in microseconds."""
    if shape is None:
        return {}
    timings = {"eager": shape.eager, "default": shape.compiled, **shape.compiled_modes}
    return {name: time for name in BASELINES if (time := _known(timings.get(name))) is not None}


def speedups_by_baseline(shape: schema.ShapeMeasurement | None) -> dict[str, float]:
    """Each baseline's median over the kernel's, both as launched (not replayed from a graph)."""
    kernel = _known(shape.kernel) if shape is not None else None
    ratios = {name: time / kernel for name, time in baselines(shape).items()} if kernel else {}
    return {name: ratio for name, ratio in ratios.items() if 0 < ratio < math.inf}


def _known(timing: schema.Timing | None) -> float | None:
    known = timing is not None and _is_number(timing.median) and 0 < timing.median < math.inf
    return timing.median if timing is not None and known else None


def _fastest(entries: Sequence[schema.Validated]) -> schema.Validated | None:
    return min(entries, key=_kernel_time_at_example, default=None)


def _kernel_time_at_example(validated: schema.Validated) -> float:
    """In microseconds, at the shapes that every published figure is about; infinite where it was not timed."""
    shape = first_shape(validated)
    return (_known(shape.kernel) if shape is not None else None) or math.inf


def not_lowered(record: Record, report: schema.Report | None) -> list[str]:
    """The operators that stayed with torch, each once: of the synthesizer's most complete candidate.

    Variants of one graph keep the same operators; where one keeps fewer, the others are no news. A language model's
    candidates do not say what they keep.
    """
    found: set[str] = set()
    if report is not None:
        keeping = [validated.candidate for validated in report.candidates if validated.candidate.kept]
        own = [validated.candidate for validated in report.candidates if validated.candidate.generator == "synthesizer"]
        if own or keeping:
            fewest = min(own or keeping, key=lambda candidate: sum(count or 0 for count in candidate.kept.values()))
            found |= set(fewest.kept)
        for source in report.sources:
            found |= set(_STOPPED_BY.findall(source.problem))
    error = record.error or {}
    if error.get("code") == "NothingToLower":
        data = error.get("data")
        data = data if isinstance(data, dict) else {}
        found |= {str(data["op"])} if data.get("op") else set(_STOPPED_BY.findall(str(error.get("message", ""))))
        found |= set(data["kept"]) if isinstance(data.get("kept"), dict) else set()
    return sorted({_operator(op) for op in found})


def _operator(name: str) -> str:
    """An operator without its overload: ``conv2d`` of ``aten.conv2d.default``; other namespaces than aten stay."""
    short = name.removeprefix("aten.")
    parts = short.split(".")
    return ".".join(parts[:2]) if short == name and len(parts) > 2 else parts[0]

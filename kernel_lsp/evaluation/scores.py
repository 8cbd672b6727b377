"""The scores of an evaluation, from its records alone: pure, so that a results file can be scored anywhere.

``fast_p`` is KernelBench's (Ouyang et al. 2025, arXiv 2502.10517): the share of all problems, also of those without a
kernel, that are correct and more than p times faster than a baseline; ``fast_0`` is the share that is correct.
Speedups are medians over medians, both as launched.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kernel_lsp.evaluation.outcomes import BASELINES, COLLAPSES, Outcome, is_beside_other_work, is_stand_in, of
from kernel_lsp.evaluation.pass_at_k import PassAtK, passing
from kernel_lsp.evaluation.records import FORMAT, NOT_STRICT, Record
from kernel_lsp.speedup import PRECISIONS, precision_words

#: fast_p for these p, by the name they have in the scores.
THRESHOLDS = {"0": 0.0, "1": 1.0, "1.5": 1.5, "2": 2.0, "3": 3.0}
#: The geometric means: over all problems, and without those whose speedup is of another reason than how fast the work is done.
WITHOUT: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "without collapsing": frozenset({COLLAPSES}),
    "without constant and collapsing": frozenset({"constant", COLLAPSES}),
}
WORST = 5


@dataclass
class Geomean:
    """The geometric mean of the speedups of correct and timed problems; None where there is none."""

    speedup: float | None
    problems: int  # that it covers


@dataclass
class Against:
    """How a group stands against one baseline."""

    baseline: str
    timed: int  # correct problems timed against it
    fast: dict[str, float] = field(default_factory=dict)  # p → share of all problems of the group
    fast_1e2: dict[str, float] = field(default_factory=dict)  # by the 1e-2 standard; empty where it was not compared
    geomeans: dict[str, Geomean] = field(default_factory=dict)  # key of WITHOUT → mean


@dataclass
class Group:
    """The problems of one level, or all."""

    name: str
    level: int | None
    mode: str
    problems: int
    correct: int
    correct_1e2: int | None  # None where no problem was compared by that standard
    compared_1e2: int  # problems that were
    against: list[Against] = field(default_factory=list)


@dataclass
class Extreme:
    """A problem that took much."""

    id: str
    mode: str
    value: float  # seconds, or bytes
    status: str
    reason: str = ""


@dataclass
class Spread:
    """Of one quantity over all problems that have it; seconds, or bytes."""

    problems: int
    median: float
    worst: float
    extremes: list[Extreme] = field(default_factory=list)  # the worst first


@dataclass
class Failed:
    """A problem without a correct kernel. ``mode``: ``eval`` or ``train``; ``reason``: why, as a clause."""

    id: str
    mode: str
    reason: str


@dataclass
class Failure:
    """The problems without a correct kernel that ended in one way."""

    status: str
    problems: list[Failed] = field(default_factory=list)


@dataclass
class Taken:
    """How many times of one baseline were measured in the run, kept from an earlier one, or come from another machine.

    ``beside``: how many of those measured in the run were measured beside other work on the GPU.
    """

    baseline: str
    measured: int
    kept: int
    stand_ins: int = 0
    beside: int = 0
    marks: dict[str, int] = field(default_factory=dict)  # what is said of them → how many


@dataclass
class Scores:
    """All that is computed from the records. The last group of each mode is over all its problems."""

    format: int
    groups: list[Group] = field(default_factory=list)
    seconds: Spread | None = None  # of a problem, wall
    stages: dict[str, float] = field(default_factory=dict)  # stage → median of the seconds since the command
    memory: dict[str, Spread] = field(default_factory=dict)  # "device", "host" → bytes
    not_lowered: dict[str, int] = field(default_factory=dict)  # ATen operator → problems
    failures: list[Failure] = field(default_factory=list)
    passing: list[PassAtK] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)  # name → problems
    machines: dict[str, int] = field(default_factory=dict)  # short id → problems
    versions: dict[str, dict[str, int]] = field(default_factory=dict)  # package → version → problems
    first: str = ""  # when the earliest and the latest record were made, ISO 8601 UTC
    last: str = ""
    warnings: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)  # one per problem and mode, in the order of the suite


def latest(records: Sequence[Record]) -> list[Record]:
    """One record per problem and mode, the latest of several, in the order of the suite."""
    found: dict[tuple[str, str, str], Record] = {}
    for record in records:
        key = (record.problem.suite, record.problem.id, record.mode)
        if key not in found or record.at >= found[key].at:
            found[key] = record

    def order(record: Record) -> tuple[str, str, float, float, str]:
        problem = record.problem
        level, number = (math.inf if n is None else n for n in (problem.level, problem.number))
        return problem.suite, record.mode, level, number, problem.id

    return sorted(found.values(), key=order)


def score(records: Sequence[Record]) -> Scores:
    """The scores of any records: of one run, or of several merged."""
    kept = latest(records)
    outcomes = [of(record) for record in kept]
    scores = Scores(FORMAT, outcomes=outcomes, groups=_groups(outcomes), passing=passing(kept))
    scores.seconds = _spread(outcomes, lambda outcome: outcome.seconds or None)
    stages = dict.fromkeys(stage for outcome in outcomes for stage in outcome.stages)
    medians = {stage: statistics.median(o.stages[stage] for o in outcomes if stage in o.stages) for stage in stages}
    scores.stages = dict(sorted(medians.items(), key=lambda item: item[1]))
    for kind in ("device", "host"):
        spread = _spread(outcomes, lambda outcome, kind=kind: outcome.memory.get(kind))  # type: ignore[misc]
        if spread is not None:
            scores.memory[kind] = spread
    scores.not_lowered = _counted(op for outcome in outcomes for op in outcome.not_lowered)
    scores.failures = _failures(outcomes)
    scores.taken = _taken(outcomes)
    scores.devices = _counted(outcome.device for outcome in outcomes if outcome.device)
    scores.machines = _counted(outcome.machine for outcome in outcomes if outcome.machine)
    names = dict.fromkeys(name for record in kept for name in record.versions if name != "device")
    scores.versions = {name: _counted(r.versions[name] for r in kept if r.versions.get(name)) for name in names}
    scores.versions = {name: seen for name, seen in scores.versions.items() if seen}
    times = sorted(record.at for record in kept if record.at)
    scores.first, scores.last = (times[0], times[-1]) if times else ("", "")
    scores.warnings = _warnings(scores, len(records) - len(kept))
    return scores


def _groups(outcomes: Sequence[Outcome]) -> list[Group]:
    """Per mode: each level, then all. No total over modes: it would count a problem twice."""
    groups = []
    modes = sorted({outcome.mode for outcome in outcomes})
    for mode in modes:
        mine = [outcome for outcome in outcomes if outcome.mode == mode]
        suffix = f", {mode}" if len(modes) > 1 else ""
        levels = sorted({outcome.level for outcome in mine if outcome.level is not None})
        for level in levels:
            groups.append(_group(f"level {level}{suffix}", level, mode, [o for o in mine if o.level == level]))
        groups.append(_group(f"all{suffix}", None, mode, mine))
    return groups


def _group(name: str, level: int | None, mode: str, outcomes: Sequence[Outcome]) -> Group:
    compared = [outcome for outcome in outcomes if outcome.correct_1e2 is not None]
    group = Group(
        name,
        level,
        mode,
        problems=len(outcomes),
        correct=sum(outcome.correct for outcome in outcomes),
        correct_1e2=sum(bool(outcome.correct_1e2) for outcome in compared) if compared else None,
        compared_1e2=len(compared),
    )
    for baseline in BASELINES:
        strict = [(o.trait, ratio) for o in outcomes if (ratio := o.speedups.get(baseline)) is not None]
        close = [ratio for o in outcomes if (ratio := o.speedups_1e2.get(baseline)) is not None]
        if strict or close:
            group.against.append(_against(baseline, group, strict, close))
    return group


def _against(baseline: str, group: Group, strict: list[tuple[str, float]], close: list[float]) -> Against:
    against = Against(baseline, timed=len(strict))
    against.fast = _fast([ratio for _, ratio in strict], group.correct, group.problems)
    if group.correct_1e2 is not None:
        against.fast_1e2 = _fast(close, group.correct_1e2, group.problems)
    for name, left_out in WITHOUT.items():
        ratios = [ratio for trait, ratio in strict if trait not in left_out]
        against.geomeans[name] = Geomean(geomean(ratios), len(ratios))
    return against


def _fast(ratios: Sequence[float], correct: int, problems: int) -> dict[str, float]:
    """Shares of all problems. fast_0 counts what is correct, timed or not."""
    counts = {name: correct if not p else sum(ratio > p for ratio in ratios) for name, p in THRESHOLDS.items()}
    return {name: count / problems for name, count in counts.items()}


def geomean(ratios: Sequence[float]) -> float | None:
    """The geometric mean of positive numbers; None of none."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _spread(outcomes: Sequence[Outcome], value: Callable[[Outcome], float | None]) -> Spread | None:
    known = [(found, outcome) for outcome in outcomes if (found := value(outcome)) is not None]
    if not known:
        return None
    known.sort(key=lambda pair: -pair[0])
    worst = [Extreme(o.id, o.mode, found, o.status, o.reason) for found, o in known[:WORST]]
    return Spread(len(known), statistics.median(found for found, _ in known), known[0][0], worst)


def _counted(values: Iterable[str]) -> dict[str, int]:
    """The most frequent first; equal counts in the order of the alphabet."""
    return dict(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))


def _failures(outcomes: Sequence[Outcome]) -> list[Failure]:
    found: dict[str, Failure] = {}
    for outcome in outcomes:
        if not outcome.correct:
            failed = Failed(outcome.id, outcome.mode, outcome.reason)
            found.setdefault(outcome.status, Failure(outcome.status)).problems.append(failed)
    return sorted(found.values(), key=lambda failure: (-len(failure.problems), failure.status))


def _taken(outcomes: Sequence[Outcome]) -> list[Taken]:
    found = []
    for baseline in BASELINES:
        timed = [outcome for outcome in outcomes if baseline in outcome.baselines]
        marks = _counted(outcome.marks[baseline] for outcome in timed if baseline in outcome.marks)
        if timed:
            foreign = sum(number for mark, number in marks.items() if is_stand_in(mark))
            beside = sum(number for mark, number in marks.items() if is_beside_other_work(mark))
            kept = sum(marks.values()) - foreign - beside
            found.append(Taken(baseline, len(timed) - kept - foreign, kept, foreign, beside, marks))
    return found


def _warnings(scores: Scores, repeated: int) -> list[str]:
    """What a reader must know before comparing any of the figures."""
    said = []
    timed = sorted({outcome.device or "a device that is not named" for outcome in scores.outcomes if outcome.speedups})
    if len(timed) > 1:
        said.append(f"The speedups come from different devices ({', '.join(timed)}): they cannot be compared.")
    for name in ("kernel-lsp", "torch", "triton", "driver"):
        seen = scores.versions.get(name, {})
        if len(seen) > 1:
            said.append(f"The records come from {len(seen)} versions of {name}: {', '.join(sorted(seen))}.")
    for held_to in PRECISIONS:
        lower = sum(outcome.status == NOT_STRICT and outcome.held_to == held_to for outcome in scores.outcomes)
        if lower:
            what = "kernel was" if lower == 1 else "kernels were"
            said.append(
                f"{lower} {what} asked for at {precision_words(held_to)}, which is not strict: "
                f"{'it counts' if lower == 1 else 'they count'} at 1e-2 alone."
            )
    kept = sum(outcome.keeps_packed_weights for outcome in scores.outcomes)
    if kept:
        kernels, they = ("kernel keeps", "its") if kept == 1 else ("kernels keep", "their")
        said.append(
            f"{kept} {kernels} packed weights from call to call (keep_packed_weights): {they} times are without what packs them."
        )
    if repeated:
        said.append(
            f"{repeated} record{'s repeat' if repeated > 1 else ' repeats'} a problem; the latest of each counts."
        )
    unreadable = [outcome.id for outcome in scores.outcomes if not outcome.readable]
    if unreadable:
        reports = f"reports of {len(unreadable)} records" if len(unreadable) > 1 else "report of 1 record"
        said.append(f"The {reports} cannot be read: {', '.join(unreadable[:WORST])}.")
    correct = [outcome for outcome in scores.outcomes if outcome.correct]
    timed_against = {taken.baseline for taken in scores.taken} | {"eager"}
    for baseline in [one for one in BASELINES if one in timed_against]:
        untimed = sum(baseline not in outcome.speedups for outcome in correct)
        if untimed:
            were, count = ("was", "it counts") if untimed == 1 else ("were", "they count")
            said.append(
                f"{untimed} of {_kernels(correct)} {were} not timed against {name_of(baseline)}: "
                f"{count} in fast_0 alone, and as not faster."
            )
    unknown = sum(outcome.correct_1e2 is None for outcome in correct)
    if 0 < unknown < len(correct):
        were, them = ("was", "it") if unknown == 1 else ("were", "them")
        said.append(f"{unknown} of {_kernels(correct)} {were} not compared at 1e-2; no figure at 1e-2 counts {them}.")
    for taken in scores.taken:
        total = taken.measured + taken.kept + taken.stand_ins
        times = f"{total} time{'s' if total != 1 else ''} of {name_of(taken.baseline)}"
        if taken.beside:
            were = "was" if taken.beside == 1 else "were"
            said.append(f"{taken.beside} of {times} {were} measured beside other work on the GPU.")
        if taken.kept:
            said.append(f"{taken.kept} of {times} {'was' if taken.kept == 1 else 'were'} kept from an earlier run.")
        if taken.stand_ins:
            are = "is a stand-in" if taken.stand_ins == 1 else "are stand-ins"
            said.append(f"{taken.stand_ins} of {times} {are}, measured on another machine.")
    return said


def _kernels(correct: Sequence[Outcome]) -> str:
    return f"{len(correct)} correct kernel{'s' if len(correct) != 1 else ''}"


def name_of(baseline: str) -> str:
    """A baseline's name for people; the other modes of torch.compile go by their own."""
    return {"default": "torch.compile"}.get(baseline, baseline)

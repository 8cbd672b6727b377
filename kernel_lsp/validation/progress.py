"""What a validation has found out about one candidate so far, and the verdict that it comes to."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_lsp import packed_weights, schema
from kernel_lsp.validation import agreement, conditions, plan
from kernel_lsp.validation.work import Budget

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee


@dataclass
class Progress:
    """What has been found out about one candidate."""

    checks: list[schema.Check] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    launched: int | None = None
    envelope: int = 0  # as in schema.Verdict
    calls: int = 1  # launches and torch's operators in one call
    sampled: list[float] = field(default_factory=list)
    check: str = ""  # the name of the one that is made now; "" while the kernel is loaded
    error: float = 0.0
    error_check: str = ""
    eager_error: float = 0.0
    beyond: bool = False  # whether the check at hand is beyond what the graph says that the module takes
    compared: bool = False  # whether any results were: else there are no errors
    example_error: float | None = None  # on the example inputs alone
    example_eager_error: float | None = None
    within_1e2: bool | None = None
    deferred: list[plan.Step] = field(default_factory=list)  # for after the first verdict, and the timing on a GPU
    skipped: list[str] = field(default_factory=list)
    #: comparisons in forward → the sides that came into a result that was compared
    shown: dict[conditions.Comparison, set[bool]] = field(default_factory=dict)
    looking: Budget = field(default_factory=lambda: Budget(conditions.LOOKING))  # for whether a side shows
    searching: Budget = field(default_factory=lambda: Budget(conditions.SEARCHING))  # for inputs that show one
    began: float = (
        0.0  # when the check that is made now did, of time.monotonic(), moved on by what it waited for the device
    )
    seconds: list[float] = field(default_factory=list)  # that each check took
    left: list[plan.Step] = field(default_factory=list)  # that have to be made after the one that is made now

    def leaves_time(self, until: float) -> bool:
        """Whether one more check before those that are left can be expected to leave them time, ``until`` of time.monotonic().

        Each is taken to last twice what the checks before lasted at the median: a machine may become busier.
        """
        expected = 2 * statistics.median(self.seconds) if self.seconds else 0.0
        return time.monotonic() + (1 + len(self.left)) * expected < until


def time_over(progress: Progress) -> str:
    """What to say where the time was over and the trial was stopped: in which check or while loading, how far it got, what to do."""
    if not progress.check:
        how_far = f": {_how_far(progress, len(progress.left))}" if progress.checks else ", before the first check"
        return f"the time was over while the kernel was loaded{how_far}. {_ADVICE}"
    longest = f" (the longest before took {max(progress.seconds):.0f} s)" if progress.seconds else ""
    took = f"{time.monotonic() - progress.began:.0f} s after it began{longest}"
    return f"the time was over in the check “{progress.check}”, {took}: {_how_far(progress, len(progress.left))}. {_ADVICE}"


def time_over_between(progress: Progress, needed: list[str]) -> str:
    """The same where checks were put off, and no time was left to begin with them. ``needed``: those that have to be made."""
    how_far = _how_far(progress, len(needed))
    return f"the time was over before all was checked that has to be ({', '.join(needed)}): {how_far}. {_ADVICE}"


_ADVICE = "Raise kernelLsp.seconds or use smaller example inputs."


def _how_far(progress: Progress, left: int) -> str:
    """``14 checks had passed, none failed, 3 more have to be made``."""
    passed = sum(check.passed for check in progress.checks)
    said = f"{passed} check{'' if passed == 1 else 's'} had passed, none failed"
    return f"{said}, {left} more ha{'s' if left == 1 else 've'} to be made" if left else said


def verdict_of(referee: Referee, status: str, reason: str, line: int | None) -> schema.Verdict:
    """The verdict of ``status`` on the candidate at hand, with what was found out about it."""
    limits = plan.ordered([*referee.progress.limits, *referee.oracle.limits, *referee.trial.limits, *referee.of_timing])
    sides: list[schema.Side] = []
    if status == "ok" and not any(step.kind == "sides" for step in referee.progress.deferred):
        sides = conditions.sides(referee)
        limits = plan.ordered([*limits, *conditions.limits(referee, sides)])
    if keeps := packed_weights.keeps(referee.trial.text()):
        limits.insert(0, packed_weights.LIMIT)
    if referee.progress.deferred:
        limits.append(schema.STILL + ", ".join(step.name for step in referee.progress.deferred))
    if referee.progress.sampled:
        percent = f"{min(referee.progress.sampled) * 100:.0f}"
        limits.append(f"in large launches only a part of the program instances was run, at least {percent} %")
    return schema.Verdict(
        status=status,  # type: ignore[arg-type]
        reason=reason,
        line=line,
        mode=referee.mode,  # type: ignore[arg-type]
        checks=referee.progress.checks,
        error=referee.progress.error if math.isfinite(referee.progress.error) and referee.progress.compared else None,
        eager_error=referee.progress.eager_error
        if math.isfinite(referee.progress.eager_error) and referee.progress.compared
        else None,
        error_check=referee.progress.error_check,
        example_error=referee.progress.example_error,
        example_eager_error=referee.progress.example_eager_error,
        precision=agreement.precision(referee),
        launches=referee.progress.launched,
        envelope=referee.progress.envelope,
        limits=limits,
        within_1e2=referee.progress.within_1e2,
        sides=sides,
        skipped=list(referee.progress.skipped),
        held_to=referee.held_to,
        keeps_packed_weights=keeps,
    )

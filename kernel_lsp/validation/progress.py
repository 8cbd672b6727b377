"""What a validation has found out about one candidate so far, and the verdict that it comes to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_lsp import schema
from kernel_lsp.validation import agreement, plan

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
    check: str = ""  # the name of the one that is made now
    error: float = 0.0
    error_check: str = ""
    eager_error: float = 0.0
    example_error: float | None = None  # on the example inputs alone
    example_eager_error: float | None = None
    within_1e2: bool | None = None
    deferred: list[plan.Step] = field(default_factory=list)  # for after the first verdict, and the timing on a GPU
    skipped: list[str] = field(default_factory=list)


def verdict_of(referee: Referee, status: str, reason: str, line: int | None) -> schema.Verdict:
    """The verdict of ``status`` on the candidate at hand, with what was found out about it."""
    limits = plan.ordered([*referee.progress.limits, *referee.oracle.limits, *referee.trial.limits, *referee.of_timing])
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
        error=referee.progress.error if math.isfinite(referee.progress.error) and referee.progress.checks else None,
        eager_error=referee.progress.eager_error
        if math.isfinite(referee.progress.eager_error) and referee.progress.checks
        else None,
        error_check=referee.progress.error_check,
        example_error=referee.progress.example_error,
        example_eager_error=referee.progress.example_eager_error,
        precision=agreement.precision(referee),
        launches=referee.progress.launched,
        envelope=referee.progress.envelope,
        limits=limits,
        within_1e2=referee.progress.within_1e2,
        skipped=list(referee.progress.skipped),
        held_to=referee.held_to,
    )

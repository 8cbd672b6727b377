"""A job, and the listener that it reports to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from kernel_lsp.errors import UserError
from kernel_lsp.schema import Report, Target

Kind = Literal["generate", "validate", "restore", "explain"]
State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(eq=False)
class Job:
    """One generation, validation, or return to a kernel from before, or a look at the synthesizer's stages. ``done`` means that there is a verdict, good or bad; ``failed`` means ``error`` is set.

    Attributes:
        path: the source file that holds the class.
        kernel: the kernel file; by default the one that belongs to the class.
        write: whether files may be written at all.
        overwrite: whether an edited kernel file may be replaced; None leaves it to the settings.
        training: whether the class is run in training mode, as a module is that nobody called ``eval()`` on.
        follow_up: whether it makes the checks that the job before left out: all of them, with the times of then.
        body: of a return, the kernel to return to: the hash of its body.
        recorded: whether kernels are timed at the shapes that ``kernel-lsp record`` saw, too.
        quota: bytes of the GPU that are its own beside other jobs of an evaluation, and bytes of the whole GPU; None: it has the GPU for itself.
        further: what the worker is told beyond what every job tells it: of a look at the stages which, and for which GPU.
        explained: of such a look, what the stages gave, as ``kernel_lsp.synthesis.explain`` has it.
        bounds: the setting that it ran with, which is part of what a verdict holds for.
        precision: the setting of this name that it ran with; of a validation, the kernel file's own.
        own_inputs: whether a part of another class needs example inputs of its own: the file's ``get_inputs()`` is not tried for it.
        number: of the candidate that is validated now, or was the last; from 1.
        review: whether a generation leaves a kernel file that is there alone, and puts what it would hold into ``proposal``.
    """

    id: str
    kind: Kind
    target: Target
    path: Path
    source: str | None = None
    kernel: Path | None = None
    write: bool = True
    overwrite: bool | None = None
    review: bool = False
    training: bool = False
    follow_up: bool = False
    body: str = ""
    recorded: bool = True
    quota: tuple[int, int] | None = None
    further: dict[str, Any] = field(default_factory=dict)
    explained: dict[str, Any] | None = None
    bounds: str = "trust"
    precision: str = "strict"
    own_inputs: bool = False
    number: int = 0
    proposal: str | None = None
    state: State = "queued"
    report: Report | None = None
    error: UserError | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in ("done", "failed", "cancelled")


class Listener(Protocol):
    """What a job calls to report. Called on the event loop; must not block."""

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        """Something goes on. ``stage`` is one of queued, starting, generating, validating, measuring, writing."""

    def verdict(self, job: Job) -> None:
        """A verdict, or a measurement after it, is known; ``job.report`` holds all there is so far."""

    def finished(self, job: Job) -> None:
        """The job is over: done, failed or cancelled. Called exactly once for every job."""

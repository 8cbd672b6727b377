"""One device of an evaluation: its own queue, and so its own worker; one problem at a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp import errors, generators, schema
from kernel_lsp.evaluation import stand_ins
from kernel_lsp.evaluation.record_of_job import NOT_OF_THE_PROBLEM, lacked_memory, record_of, was_held_up
from kernel_lsp.evaluation.records import Record
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.jobs.gpu_turns import GpuTurns
from kernel_lsp.settings import Settings, load
from kernel_lsp.suites.found import Found
from kernel_lsp.suites.problem import Problem

#: Every part of a job has its own limit. This one ends a problem whose parts have all failed to.
OVER_BUDGET, OVER_SECONDS = 1.5, 60.0
_CANCEL_SECONDS = 2.0

OnProgress = Callable[[Problem, str, int], None]  # the problem, what goes on, its percentage


@dataclass(frozen=True)
class Plan:
    """How every problem is run. Plain data, since other machines get it, too."""

    mode: str = "eval"  # "eval" | "train"
    settings: dict[str, Any] = field(default_factory=dict)  # on top of those of pyproject.toml, as settings.load takes
    stand_ins: dict[str, dict[str, float]] = field(default_factory=dict)  # see evaluation.stand_ins
    stand_in_mark: str = ""  # what is said of a time that comes from there


@dataclass
class Shared:
    """What the lanes of one device have in common.

    Attributes:
        gpu: turns of their jobs: several may validate at once, of which their workers let one time alone; a model generates alone.
        problems: turns of problems; one that lacked memory, or was held up as it was timed, is run again alone.
        locks: the folder of the locks by which their workers do that; None: that of the store, for one lane.
        quota: (bytes of the GPU for each lane, bytes of the whole GPU); a problem that needs more than the first takes more. None: there is one lane, or it is not known.
    """

    gpu: GpuTurns = field(default_factory=GpuTurns)
    problems: GpuTurns = field(default_factory=GpuTurns)
    locks: str | None = None
    quota: tuple[int, int] | None = None


class LaneLost(Exception):
    """The lane can run no problem, for a reason that is not the problem's."""

    def __init__(self, error: errors.UserError) -> None:
        super().__init__(str(error))
        self.error = error


class Lane:
    """``device`` is a value of the setting: "cuda:1", "interpreter". ``shared``: by all lanes of the device."""

    def __init__(
        self,
        plan: Plan,
        device: str,
        on_progress: OnProgress = lambda *_: None,
        shared: Shared | None = None,
    ) -> None:
        self.plan, self.device = plan, device
        self.shared = shared or Shared()
        self._on_progress = on_progress
        self._problem: Problem | None = None
        self._jobs = self._new_jobs()
        self._root: Path | None = None

    async def evaluate(self, found: Found) -> Record:
        """The record of a problem, whatever its module does.

        One that lacked the memory of a GPU that other lanes use, too, or has no times since they were in its way, is run once more when
        these are done with their problems.

        Raises:
            LaneLost: there is no worker, device or model to run it with.
        """
        problems = self.shared.problems
        async with problems.one():
            record = await self._evaluate(found, self.shared.quota)
        if problems.most == 1 or not self.device.startswith("cuda"):
            return record
        if lacked_memory(record):
            self._on_progress(found.problem, "Waiting for the GPU's whole memory", 0)
        elif was_held_up(record):
            self._on_progress(found.problem, "Waiting for the machine, to be timed without other problems", 0)
        else:
            return record
        async with problems.alone():
            return await self._evaluate(found, None)

    async def _evaluate(self, found: Found, quota: tuple[int, int] | None) -> Record:
        problem, file, folder = found
        self._problem = problem
        started = time.monotonic()
        if not file.is_file():  # another machine of a cluster may not see it
            missing: errors.UserError = errors.NotSavedYet(path=str(file))
            return record_of(problem, self.plan.mode, None, missing, 0.0, None, folder)
        settings = self._settings(file)
        if settings.root != self._root:  # a project's worker runs in its folder: let the last one's go
            self._root = settings.root
            self._jobs.rest()
        hello = await self.hello(file)
        began = started = time.monotonic()
        job = self._jobs.submit(
            "generate",
            schema.Target(file.as_uri(), problem.class_name),
            file,
            write=False,
            training=self.plan.mode == "train",
            recorded=False,  # a suite is about its own example inputs
            quota=quota,
        )
        assert job.task is not None
        await _ended(job, settings.seconds * OVER_BUDGET + OVER_SECONDS)
        error = job.error
        if not job.over:
            await self._abandon(job)
            error = errors.WorkerTimedOut(seconds=time.monotonic() - began, stage="evaluating the problem")
        if error is not None and type(error).__name__ in NOT_OF_THE_PROBLEM:
            raise LaneLost(error)
        seconds = time.monotonic() - started
        seconds -= _waited(job)
        if job.report is not None and problem.id in self.plan.stand_ins:
            stand_ins.fill(job.report, self.plan.stand_ins[problem.id], self.plan.stand_in_mark)
        return record_of(problem, self.plan.mode, job.report, error, seconds, hello, folder)

    async def close(self) -> None:
        """End the worker."""
        await self._jobs.close()

    async def hello(self, file: Path) -> dict[str, Any]:
        """What the worker says of itself, which runs then: starting it is not on a problem's time.

        Raises:
            LaneLost: the worker cannot be used here, or ended or did not answer twice.
        """
        for attempt in (1, 2):
            try:
                hello = await self._jobs.hello(file)
                if not hello.get("problems"):
                    await self._jobs.ready(file)
                break
            except (errors.WorkerDied, errors.WorkerTimedOut) as error:
                if attempt == 2:  # once may be what the problem before did to the machine
                    raise LaneLost(error) from None
            except errors.UserError as error:
                raise LaneLost(error) from None
        if problems := hello.get("problems"):
            raise LaneLost(errors.from_json(problems[0]))
        return hello

    async def _abandon(self, job: Job) -> None:
        """End a job that its own limits did not end, with its worker; whatever is left of it, the lane starts anew."""
        workers = self._jobs.worker_pids()
        self._jobs.cancel(job.id)
        assert job.task is not None
        await asyncio.wait([job.task], timeout=_CANCEL_SECONDS)
        for pid in workers:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)  # it leads a group of its own
        old, self._jobs = self._jobs, self._new_jobs()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(old.close(), 5.0)

    def _new_jobs(self) -> Jobs:
        return Jobs(self._settings, self, gpu=self.shared.gpu, locks=self.shared.locks)

    def _settings(self, file: Path) -> Settings:
        settings, problems = load(file, cli=self.plan.settings)
        for problem in problems:
            if problem.path == "command line":
                raise problem
        kernelllm = settings.kernelllm
        if self.device.startswith("cuda") and kernelllm.device == "auto":
            # Each GPU has its own model; else all of them would be loaded on the first.
            kernelllm = dataclasses.replace(kernelllm, device=self.device)
        changed = dataclasses.replace(settings, device=self.device, kernelllm=kernelllm)
        return dataclasses.replace(changed, generators=generators.that_write(changed))

    # The queue's listener.

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        """Hand the progress of the problem at hand on."""
        if self._problem is not None:
            self._on_progress(self._problem, message, percentage)

    def verdict(self, job: Job) -> None:
        """Nothing is done: the record is made when the job is over."""
        pass

    def finished(self, job: Job) -> None:
        """Nothing is done: ``evaluate`` waits for the job."""
        pass


async def _ended(job: Job, seconds: float) -> None:
    """Wait until a job is over, or has taken so many seconds without its waiting for the GPU."""
    assert job.task is not None
    began = time.monotonic()
    while not job.task.done() and (left := began + seconds + _waited(job) - time.monotonic()) > 0:
        await asyncio.wait([job.task], timeout=left)


def _waited(job: Job) -> float:
    """Seconds that a job has waited for others to be done with the GPU."""
    return job.report.spent.get("waiting", 0.0) if job.report is not None else 0.0

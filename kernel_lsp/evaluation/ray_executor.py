"""Problems spread over a Ray cluster: one actor holds one GPU (or one CPU) and runs one problem at a time.

The only place that imports ray. The driver alone writes records; an actor that is lost with its machine costs the problem
that it had, which another one gets once more. Every machine must see the problems under the same paths and have kernel-lsp.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from kernel_lsp import errors
from kernel_lsp.evaluation.lane import OVER_BUDGET, OVER_SECONDS, Lane, LaneLost, OnProgress, Plan
from kernel_lsp.evaluation.record_of_job import record_of
from kernel_lsp.evaluation.records import Record
from kernel_lsp.evaluation.runner import OnRecord
from kernel_lsp.settings import load
from kernel_lsp.suites.found import Found

_START_SECONDS = 300.0  # for an actor's worker to start, at most
_ATTEMPTS = 2


class Actor:
    """What runs on the cluster."""

    def __init__(self, plan: Plan, device: str) -> None:
        self._runner = asyncio.Runner()
        self._lane = Lane(plan, device)

    def ready(self) -> bool:
        """Answered once the actor is up on its machine."""
        return True

    def evaluate(self, found: Found) -> dict[str, Any]:
        """``{"record": …}``, or ``{"lost": error}`` where this machine can run no problem."""
        try:
            return {"record": self._runner.run(self._lane.evaluate(found)).to_json()}
        except LaneLost as lost:
            return {"lost": lost.error.to_json()}


@dataclass
class _Work:
    """What an actor is doing; ``found`` is None while it starts."""

    actor: Any
    found: Found | None = None
    attempt: int = 1
    began: float = field(default_factory=time.monotonic)


def run(
    problems: Sequence[Found], plan: Plan, workers: int | None, on_record: OnRecord, on_progress: OnProgress
) -> bool:
    """As ``runner.run``; ``workers``: how many actors, by default as many as the cluster has GPUs, or else CPUs.

    Raises:
        RayMissing, RayUnavailable: there is no ray, or no cluster.
        UserError: no machine of it can run a problem.
    """
    ray = _connect()
    try:
        with _sigterm_interrupts():
            _Driver(ray, problems, plan, workers, on_record, on_progress).run()
        return True
    except KeyboardInterrupt:
        return False
    finally:
        ray.shutdown()


class _Driver:
    def __init__(
        self,
        ray: Any,
        problems: Sequence[Found],
        plan: Plan,
        workers: int | None,
        on_record: OnRecord,
        on_progress: OnProgress,
    ) -> None:
        self.ray, self.plan, self.on_record, self.on_progress = ray, plan, on_record, on_progress
        self.waiting: deque[tuple[Found, int]] = deque((found, 1) for found in problems)
        self.pending: dict[Any, _Work] = {}
        self.idle: list[Any] = []
        self.failed_starts = 0
        resources = ray.cluster_resources()
        wanted = load(problems[0].file, cli=plan.settings)[0].device
        gpus = int(resources.get("GPU", 0))
        if wanted.startswith("cuda") and not gpus:
            raise errors.NoSuchDevice(device=wanted, interpreter="Ray", detail="the cluster has no GPU")
        self.on_gpu = wanted != "interpreter" and gpus > 0
        most = gpus if self.on_gpu else int(resources.get("CPU", 1))
        self.count = max(1, min(workers or most, len(problems)))

    def run(self) -> None:
        for _ in range(self.count):
            self._start()
        try:
            while self.waiting or any(work.found for work in self.pending.values()):
                while self.waiting and self.idle:
                    self._give(self.idle.pop(), *self.waiting.popleft())
                if not self.pending:
                    raise errors.RayUnavailable(detail="no worker is left")
                done, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=1.0)
                for reference in done:
                    self._ended(reference, self.pending.pop(reference))
                self._end_stuck()
        finally:
            for actor in [*self.idle, *(work.actor for work in self.pending.values())]:
                self._kill(actor)

    def _start(self) -> None:
        """Ask for an actor; it is there when its first method answers, which may take as long as the cluster is full."""
        resources = {"num_gpus": 1} if self.on_gpu else {"num_cpus": 1}
        # Ray shows an actor the GPU it holds as the first one.
        device = "cuda:0" if self.on_gpu else "interpreter"
        actor = self.ray.remote(Actor).options(**resources, max_restarts=0).remote(self.plan, device)
        self.pending[actor.ready.remote()] = _Work(actor)

    def _give(self, actor: Any, found: Found, attempt: int) -> None:
        self.on_progress(found.problem, "Running on the Ray cluster", 5)
        self.pending[actor.evaluate.remote(found)] = _Work(actor, found, attempt)

    def _ended(self, reference: Any, work: _Work) -> None:
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self._kill(work.actor)
            self._lost(work, error)
            return
        if work.found is None:
            self.idle.append(work.actor)
        elif "lost" in answer:
            self.waiting.appendleft((work.found, work.attempt))
            self._kill(work.actor)
            if not self.idle and not self.pending:
                raise errors.from_json(answer["lost"])
        else:
            self.on_record(Record.from_json(answer["record"]))
            self.idle.append(work.actor)

    def _lost(self, work: _Work, error: Exception) -> None:
        """An actor died: with its machine, or with what the problem did to it."""
        detail = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if work.found is None:
            self.failed_starts += 1
            if self.failed_starts > self.count:
                raise errors.RayUnavailable(detail=f"its workers end as they start ({str(error).strip()[-300:]})")
        elif work.attempt < _ATTEMPTS:
            self.waiting.appendleft((work.found, work.attempt + 1))
        else:
            died = errors.WorkerDied(detail=f"the Ray worker was lost twice: {detail}")
            self._record_error(work, died)
        self._start()

    def _end_stuck(self) -> None:
        """An actor that has not answered long after every limit of its own is ended, and its problem with it."""
        for reference, work in list(self.pending.items()):
            if work.found is None:
                if self.waiting and time.monotonic() - work.began > 10 and len(self.pending) == self.count:
                    self.on_progress(self.waiting[0][0].problem, "Waiting for the Ray cluster", 0)
                continue
            seconds = load(work.found.file, cli=self.plan.settings)[0].seconds
            if time.monotonic() - work.began > seconds * OVER_BUDGET + 2 * OVER_SECONDS + _START_SECONDS:
                del self.pending[reference]
                self._kill(work.actor)
                took = time.monotonic() - work.began
                self._record_error(work, errors.WorkerTimedOut(seconds=took, stage="running on the Ray cluster"))
                self._start()

    def _record_error(self, work: _Work, error: errors.UserError) -> None:
        assert work.found is not None
        problem, _, folder = work.found
        took = time.monotonic() - work.began
        self.on_record(record_of(problem, self.plan.mode, None, error, took, None, folder))

    def _kill(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # it may be gone
            self.ray.kill(actor)


def _connect() -> Any:
    """The module ray, connected to the cluster that RAY_ADDRESS names or that runs here, else to one of its own."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere that was not asked for
    try:
        import ray
        import ray.exceptions
    except ImportError:
        command = f"{sys.executable} -m pip install 'kernel-lsp[ray]'"
        raise errors.RayMissing(interpreter=sys.executable, command=command) from None
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
    except Exception as error:  # ray has no class of its own for it
        detail = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise errors.RayUnavailable(detail=detail.rstrip(".")) from error
    return ray


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM ends the evaluation as Ctrl-C does. Set after ``ray.init``, which sets a handler that exits."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

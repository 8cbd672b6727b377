"""What one job works with while it runs: its worker, its time budget, its source and its report."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp import class_schema, errors, kernel_file, loading, schema, why_eager
from kernel_lsp.analysis import fingerprint, is_module_class, may_have_inputs, not_found, unparsed
from kernel_lsp.device_choice import pick_device
from kernel_lsp.jobs import example_table
from kernel_lsp.jobs.client import EventHandler, Worker
from kernel_lsp.jobs.gpu_turns import GpuTurns
from kernel_lsp.jobs.hosts import ModelHosts
from kernel_lsp.jobs.job import Job, Listener
from kernel_lsp.jobs.paths import check_path
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.recording import examples, timed
from kernel_lsp.settings import Settings
from kernel_lsp.store.database import path_for

log = logging.getLogger("kernel_lsp.jobs")

GRACE_SECONDS = 10.0  # what the worker gets beyond its own budget, to stop a trial and say so
LEAST_SECONDS = 5.0  # a candidate that would get less is not tried


@dataclass
class Run:
    """One job on one worker, whose lock it holds.

    Attributes:
        started: when the command came; what the report's seconds count from.
        began: when its turn came; what the time budget counts from.
        hosts: the model hosts.
        gpu: turns on the GPU, for timing something there or for a model that generates on it; never both at once.
        locks: the folder of the worker's locks on GPUs; None: that of the store.
    """

    job: Job
    settings: Settings
    worker: Worker
    listener: Listener
    report: schema.Report
    started: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    hosts: ModelHosts = field(default_factory=ModelHosts)
    gpu: GpuTurns = field(default_factory=GpuTurns)
    locks: str | None = None
    shown: int = 0  # the percentage last told, which never goes back
    validating: str = ""  # the stage of the candidate that is validated now; "" while none is
    first_device: schema.Device | None = None  # as the worker named it, before anything was measured there
    looked_at: class_schema.Specimen | None = None  # the class as the worker saw it when it validated
    example: int = 0  # which of several examples of the class, from 0
    recorded: dict[str, Any] | None = None  # a recorded call for the example, see recording.examples.table_for
    recorded_shapes: dict[str, Any] | None = None  # recorded calls to time at, see recording.timed.table_for

    def __post_init__(self) -> None:
        self._answers: dict[str, Any] = {}

    @functools.cached_property
    def kernel(self) -> Path:
        """The kernel file that the job is about."""
        job = self.job
        found = job.kernel or kernel_file.find_kernel(job.path, job.target.class_name, self.settings.kernel_folder)
        return Path(os.path.abspath(found))

    def elapsed(self) -> float:
        """Seconds since the command came."""
        return time.monotonic() - self.started

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self.settings.seconds - (time.monotonic() - self.began)

    def mark(self, stage: str) -> None:
        """Note when a stage was reached for the first time."""
        self.report.seconds.setdefault(stage, round(self.elapsed(), 3))

    def progress(self, stage: str, message: str, percentage: float) -> None:
        """Tell the listener, with a ``percentage`` that never goes back; an exception of the listener's is logged."""
        self.shown = max(self.shown, min(round(percentage), 100))
        try:
            self.listener.progress(self.job, stage, message, self.shown)
        except Exception:
            log.exception("listener.progress")

    def read_source(self) -> str:
        """The source file as it is on disk, which is what the worker imports.

        Raises:
            NotSavedYet: it is not there.
            PathNotUtf8: torch and Triton could not read it.
            SourceUnreadable: it cannot be read, or is not UTF-8.
        """
        check_path(self.job.path)
        try:
            with self.job.path.open(encoding="utf-8-sig", newline="") as file:
                return file.read()
        except FileNotFoundError:
            raise errors.NotSavedYet(path=str(self.job.path)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise errors.SourceUnreadable.of(self.job.path, error) from error

    def take_fingerprint(self) -> str:
        """The class's fingerprint, taken before the worker imports it.

        Should the file change in between, the kernel carries the older fingerprint: it then counts as stale and is
        validated again, which is the harmless side to err on.

        Raises:
            SyntaxInvalid, ClassNotFound: the source does not parse, or it has no class of that name.
        """
        target, source = self.job.target, self.read_source()
        # Another Python may be newer than this one, and says itself what it does not parse.
        own = self.settings.interpreter_command() == [sys.executable]
        if own and (error := unparsed(source, self.job.path)) is not None:
            raise error
        try:
            target.fingerprint = fingerprint(source, self.job.path, target.class_name)
        except errors.ClassNotFound:
            raise not_found(source, self.job.path, target.class_name) from None
        return target.fingerprint

    async def require_inputs(self) -> None:
        """Tell of a class without example inputs, as far as that can be seen without running its file.

        Of a name that may be something else than a module, the worker says what it is.

        Raises:
            NoExampleInputs: neither the text of the file nor pyproject.toml nor a recording has any.
        """
        path, class_name, source = self.job.path, self.job.target.class_name, self.read_source()
        whole = self.whole if self.job.own_inputs else None
        if may_have_inputs(source, class_name, shared=whole is None):
            return
        if self.settings.inputs_for(path, class_name) is not None:
            return
        if await asyncio.to_thread(examples.table_for, path, class_name) is not None:
            return
        if is_module_class(source, path, class_name):
            raise errors.NoExampleInputs(path=str(path), class_name=class_name, whole=whole or "")

    @contextlib.contextmanager
    def told_of_parts(self) -> Iterator[None]:
        """Within it, what a part raises with the file's ``get_inputs()`` becomes an error that says which class that is for.

        Raises:
            NoExampleInputs: in place of InitFailed, ForwardFailed, and one that does not say so.
        """
        try:
            yield
        except (errors.InitFailed, errors.ForwardFailed, errors.NoExampleInputs) as error:
            if self.whole is None or self.report.candidates or self.inputs() is not None:
                raise
            path, name = self.job.path, self.job.target.class_name
            misfit = example_table.misfit(error, self.read_source(), name)
            if not misfit or self.job.own_inputs:
                raise
            raise errors.NoExampleInputs(path=str(path), class_name=name, whole=self.whole, detail=misfit) from None

    @functools.cached_property
    def whole(self) -> str | None:
        """The class, of which this one is a part, that the file's ``get_inputs()`` is for; None where it is for any."""
        return example_table.whole_of(self.job.path, self.job.target.class_name)

    def completed(self, body: str) -> str:
        """The body of a kernel file with what every one has, from any generator.

        It finds the user's module from its folder and from the one above, says why a call runs the module's own forward, and
        when the class has changed.
        """
        name = self.job.target.class_name
        try:
            source = self.read_source()
        except errors.UserError:  # gone since
            return body
        own = why_eager.TAKEN.search(source) is not None
        path, kernel = os.path.abspath(self.job.path), os.path.abspath(self.kernel)
        folders = os.path.relpath(os.path.dirname(path), os.path.dirname(kernel)).replace(os.sep, "/")
        body = loading.from_both(loading.from_one(body), os.path.basename(path).removesuffix(".py"), folders)
        return why_eager.added(body, name, why_eager.digest_of(source, name), method=not own)

    def source_digest(self) -> str:
        """What ``why_eager`` compares the class with, as it is on disk; "" where it is not at its file's margin."""
        return why_eager.digest_of(self.read_source(), self.job.target.class_name)

    def is_unchanged(self) -> bool:
        """Whether the class is still the one that ``take_fingerprint`` saw."""
        try:
            now = fingerprint(self.read_source(), self.job.path, self.job.target.class_name)
        except errors.UserError:
            return False
        return now == self.job.target.fingerprint

    async def start_worker(self) -> None:
        """See that the worker is up and fit.

        Raises:
            UserError: it cannot start, or lacks a package.
        """
        self.progress("starting", "Starting the worker", 2)
        about = (self.job.path, self.job.target.class_name)
        self.recorded = await asyncio.to_thread(examples.table_for, *about)
        self.recorded_shapes = await asyncio.to_thread(timed.table_for, *about) if self.job.recorded else None
        hello = await self.worker.start()
        problems = hello.get("problems") or []
        if problems:
            await self.worker.stop()  # so that the next job finds what was installed meanwhile
            raise errors.from_json(problems[0])
        self.mark("ready")
        self.report.device = self.first_device = pick_device(hello, self.settings.device)

    @property
    def on_gpu(self) -> bool:
        """Whether the worker's device is a GPU, as far as the report knows it."""
        return self.report.device is not None and self.report.device.kind == "cuda"

    @contextlib.asynccontextmanager
    async def timing(self) -> AsyncIterator[None]:
        """To be held around whatever times something: no model of ours generates on the GPU meanwhile.

        Waiting for it is not on the budget. Where several jobs have a turn at once, their workers see to it that one times alone.
        """
        if not self.on_gpu:
            yield
            return
        async with self.gpu.one(self._waited):
            yield

    def _waited(self, seconds: float) -> None:
        """Take what the job has waited for others to be done with the GPU off what it has taken of its budget."""
        self.began += seconds
        self.report.spent["waiting"] = round(self.report.spent.get("waiting", 0.0) + seconds, 3)

    async def ask_on_device(self, method: str, params: dict[str, Any], stage: str, on_event: EventHandler) -> Any:
        """The worker's answer to a request that uses the device, within what is left of the budget.

        Raises:
            UserError: the worker's.
        """
        seconds = max(self.remaining(), LEAST_SECONDS)

        def heard(name: str, data: Any) -> None:
            if name == "waiting":
                self._waited(float(data["seconds"]))
            else:
                on_event(name, data)

        params = self.params() | params | {"seconds": seconds}
        return await self.worker.request(method, params, seconds=seconds + GRACE_SECONDS, stage=stage, on_event=heard)

    def inputs(self) -> dict[str, Any] | None:
        """The table of example inputs from pyproject.toml, with what was recorded under ``recorded``."""
        table = self.settings.inputs_for(self.job.path, self.job.target.class_name)
        return example_table.joined(table, self.recorded, lambda: self.whole)

    def params(self) -> dict[str, Any]:
        """What every request about the class begins with."""
        return {
            "path": str(self.job.path),
            "class_name": self.job.target.class_name,
            "fingerprint": self.job.target.fingerprint,
            "inputs": self.inputs(),
            "example": self.example,
            "device": self.settings.device,
            "training": self.job.training,
            "thorough": self.settings.thorough or self.job.follow_up,
            "bounds": self.settings.bounds,
            "precision": self.job.precision,
            "keep_packed_weights": self.settings.keep_packed_weights,
            "kernel": str(self.kernel),
            "locks": self.locks or lock_folder(self.settings),
            "quota": self.job.quota,
        }

    async def ask_worker(self, method: str, stage: str) -> Any:
        """A request about the class, within what is left of the budget. It is made once: two generators share an answer.

        Raises:
            UserError: the worker's, also the second time.
        """
        if method not in self._answers:
            seconds = max(self.remaining(), LEAST_SECONDS)  # no grace: the worker ends nothing of it by itself
            params = self.params() | self.job.further
            try:
                self._answers[method] = await self.worker.request(method, params, seconds=seconds, stage=stage)
            except errors.WorkerDied:
                raise
            except errors.UserError as error:
                self._answers[method] = error
        if isinstance(self._answers[method], errors.UserError):
            raise self._answers[method]
        return self._answers[method]

    def tell_faults(self, proposed: list[schema.Candidate]) -> None:
        """Warn of what the synthesizer failed at, once for all schedules of a kernel."""
        for candidate in proposed:
            for fault in candidate.faults:
                if fault["message"] not in self.report.warnings:
                    log.warning("%s", fault["message"])
                    self.report.warnings.append(fault["message"])

    def tell_verdict(self) -> None:
        """An entry of the report is new, or has changed."""
        self.tell("verdict")

    def tell(self, stage: str) -> None:
        """An entry of the report is new, or has changed, which is what ``stage`` is called. A listener's exception is logged."""
        self.mark(stage)
        self.report.chosen = fastest(self.report.candidates)
        try:
            self.listener.verdict(self.job)
        except Exception:
            log.exception("listener.verdict")


def lock_folder(settings: Settings) -> str | None:
    """Where workers keep the locks on GPUs, which all of a user's share: beside the store; None where there is no store."""
    store = path_for(settings.store, settings.root)
    return None if store is None else str(store.parent)

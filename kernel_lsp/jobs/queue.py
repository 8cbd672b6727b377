"""The queue: which job runs when, on which worker; cancel and close."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_lsp import class_schema, schema
from kernel_lsp.errors import Cancelled, InternalError, UserError
from kernel_lsp.jobs import giving_way, job_store
from kernel_lsp.jobs.client import Worker
from kernel_lsp.jobs.estimating import estimate
from kernel_lsp.jobs.gpu_turns import GpuTurns
from kernel_lsp.jobs.hosts import ModelHosts
from kernel_lsp.jobs.job import Job, Kind, Listener
from kernel_lsp.settings import Settings

log = logging.getLogger("kernel_lsp.jobs")

_KEPT = 50  # jobs that are over are remembered for their reports, up to this many


class Jobs:
    """Runs jobs on the event loop on which they are submitted, one at a time on each worker.

    Args:
        settings_for: the settings in force for a source file. A UserError it raises fails the job.
        listener: told of progress, verdicts and the end of every job.
        give_way: whether workers leave the processor to others, as beside an editor.
        gpu: turns on the GPU, where several queues share one.
        locks: the folder of the worker's locks on GPUs, where it is not that of the store.
    """

    def __init__(
        self,
        settings_for: Callable[[Path], Settings],
        listener: Listener,
        *,
        give_way: bool = False,
        gpu: GpuTurns | None = None,
        locks: str | None = None,
    ) -> None:
        self._give_way = give_way
        self._settings_for = settings_for
        self._listener = listener
        self._jobs: dict[str, Job] = {}
        self._workers: dict[tuple[tuple[str, ...], Path | None], Worker] = {}
        self._hosts = ModelHosts()
        self._gpu, self._locks = gpu or GpuTurns(), locks
        self._numbers = itertools.count(1)
        self._background: set[asyncio.Task[Any]] = set()
        self._importing, self._imported = asyncio.Lock(), False
        self._estimating: asyncio.Task[class_schema.Estimate | None] | None = None
        self._closed = False

    def submit(
        self,
        kind: Kind,
        target: schema.Target,
        path: Path,
        source: str | None = None,
        *,
        kernel: Path | None = None,
        write: bool = True,
        overwrite: bool | None = None,
        review: bool = False,
        training: bool = False,
        follow_up: bool = False,
        body: str = "",
        recorded: bool = True,
        further: dict[str, Any] | None = None,
        quota: tuple[int, int] | None = None,
        own_inputs: bool = False,
    ) -> Job:
        """Put a job in the queue and return at once.

        A job of the same kind for the same class and document version that is not over yet is returned instead of a
        second one; one for an older version is cancelled, since its result would be out of date. ``source`` is
        the text in the editor; work is done on what is on disk, and the fingerprint tells the two apart.
        """
        self._drop_estimate()
        for other in list(self._jobs.values()):
            if other.over or (other.kind, other.path, other.kernel) != (kind, path, kernel):
                continue
            if other.target.class_name == target.class_name:
                same = other.target.version == target.version is not None and other.source == source
                asked = (other.write, other.overwrite, other.review, other.training, other.follow_up, other.body)
                if (
                    same
                    and asked == (write, overwrite, review, training, follow_up, body)
                    and (other.recorded, other.further, other.own_inputs) == (recorded, further or {}, own_inputs)
                ):
                    return other
                self.cancel(other.id)
        number = f"{kind}-{next(self._numbers)}"
        job = Job(number, kind, target, path, source, kernel, write, overwrite, review, training, follow_up, body)
        job.recorded, job.further, job.quota, job.own_inputs = recorded, further or {}, quota, own_inputs
        job.report = schema.Report(target=target)
        self._jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self._run(job), name=job.id)
        job.task.add_done_callback(lambda _: self._never_began(job))
        self._forget_old()
        return job

    async def estimate(self, path: Path, class_name: str) -> class_schema.Estimate | None:
        """What a kernel for a class is estimated to gain.

        None where the class cannot be looked at without real tensors.

        Raises:
            Cancelled: a job is there, or one was submitted meanwhile: no job waits for this.
            UserError: the worker cannot start, or something is wrong with the class.
        """
        if self._closed or self.active():
            raise Cancelled
        settings = self._settings_for(path)
        self._drop_estimate()
        asking = asyncio.get_running_loop().create_task(estimate(self._worker(settings), settings, path, class_name))
        self._estimating = asking
        self._keep(asking)
        try:
            await asyncio.wait({asking})
            if asking.cancelled():
                raise Cancelled
            return asking.result()
        finally:
            asking.cancel()

    def _drop_estimate(self) -> None:
        if self._estimating is not None:
            self._estimating.cancel()
            self._estimating = None

    def get(self, job_id: str) -> Job | None:
        """A job by its id, also one that is over as long as it is kept."""
        return self._jobs.get(job_id)

    def active(self) -> list[Job]:
        """The jobs that are queued or running, the oldest first."""
        return [job for job in self._jobs.values() if not job.over]

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; False if there is none of that id, or it is over. Its worker is idle within a second."""
        job = self._jobs.get(job_id)
        if job is None or job.over or job.task is None:
            return False
        job.task.cancel()
        return True

    def warm(
        self, path: Path, then: Callable[[], None] | None = None, failed: Callable[[UserError], None] | None = None
    ) -> None:
        """Start the worker for a file in the background, so that the first job finds it ready.

        ``then`` is called once the worker has named its devices, ``failed`` with what it could not be started for.
        """

        async def start() -> None:
            try:
                settings = self._settings_for(path)
                await job_store.keep_devices(settings, await self._worker(settings).start())
            except UserError as error:
                log.info("worker not ready: %s", error)
                if failed is not None:
                    failed(error)
                return
            if then is not None:
                then()

        self._keep(asyncio.get_running_loop().create_task(start()))

    def rest(self) -> None:
        """End the workers and model hosts that no job uses, which frees what they hold of a GPU."""
        for key, worker in list(self._workers.items()):
            if not worker.lock.locked():
                del self._workers[key]
                self._keep(asyncio.get_running_loop().create_task(worker.close()))
        self._keep(asyncio.get_running_loop().create_task(self._hosts.end_idle()))

    async def hello(self, path: Path) -> dict[str, Any]:
        """What the worker for a file says of itself: interpreter, versions, devices, problems.

        Raises:
            UserError: it cannot be started.
        """
        return await self._worker(self._settings_for(path)).start()

    async def ready(self, path: Path) -> None:
        """Wait until the worker for a file is warm, so that the first job does not pay for its start.

        Raises:
            UserError: it cannot be started.
        """
        await self._worker(self._settings_for(path)).ready()

    def worker_pids(self) -> list[int]:
        """The worker processes that run now."""
        return [worker.pid for worker in self._workers.values() if worker.pid is not None]

    def model_host_pids(self) -> list[int]:
        """The model hosts that run now."""
        return self._hosts.pids()

    async def close(self) -> None:
        """Cancel every job and end every worker; nothing of them is left afterwards. Takes less than two seconds."""
        self._closed = True
        for worker in self._workers.values():
            worker.closing = True  # so that cancelled jobs do not ask it for leave
        tasks = [job.task for job in self.active() if job.task] + list(self._background)
        for task in tasks:
            task.cancel()
        ending = [worker.close() for worker in self._workers.values()]
        await asyncio.gather(*ending, self._hosts.close(), return_exceptions=True)
        if tasks:
            await asyncio.wait(tasks, timeout=0.5)

    def _worker(self, settings: Settings) -> Worker:
        """The worker that runs this interpreter in this project; one for the same project that no job uses is ended."""
        key = (tuple(settings.interpreter_command()), settings.root)
        if key not in self._workers:
            for other, worker in list(self._workers.items()):
                if other[1] == settings.root and not worker.lock.locked():
                    del self._workers[other]
                    self._keep(asyncio.get_running_loop().create_task(worker.close()))
            self._workers[key] = Worker(key[0], settings.root, give_way=self._give_way)
        return self._workers[key]

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _import_pipelines(self) -> None:
        """Once, beside what the editor asks meanwhile: it takes a quarter of a second. Jobs keep their order."""
        async with self._importing:
            if not self._imported:
                await asyncio.to_thread(importlib.import_module, "kernel_lsp.jobs.pipelines")
                self._imported = True

    async def _run(self, job: Job) -> None:
        """One job from the queue to its end."""
        assert job.report is not None
        started = time.monotonic()
        try:
            if self._closed:
                raise asyncio.CancelledError
            await self._import_pipelines()
            from kernel_lsp.jobs.pipelines import PIPELINES, Run

            settings = self._settings_for(job.path)
            job.bounds, job.precision = settings.bounds, settings.precision
            worker = self._worker(settings)
            if worker.lock.locked():
                self._tell("progress", job, "queued", "Waiting for the job before", 0)
            async with worker.lock:
                job.state = "running"
                # Behind a prefix the worker may be on another machine, whose load is not known.
                gives_way = self._give_way and not settings.worker_prefix
                told = giving_way.listening if gives_way else contextlib.nullcontext
                async with told(self._listener) as listener:
                    run = Run(job, settings, worker, listener, job.report, started)
                    run.hosts, run.gpu, run.locks = self._hosts, self._gpu, self._locks
                    with run.told_of_parts():
                        await PIPELINES[job.kind](run)
            job.state = "done"
        except asyncio.CancelledError:
            job.state, job.error = "cancelled", Cancelled()
        except UserError as error:
            job.state, job.error = "failed", error
        except Exception as error:
            log.exception("%s for %s", job.id, job.target.class_name)
            job.state, job.error = "failed", InternalError(detail=f"{type(error).__name__}: {error}")
        job.report.seconds["report"] = round(time.monotonic() - started, 3)
        self._tell("finished", job)

    def _never_began(self, job: Job) -> None:
        """A task that is cancelled before its first step runs none of its code: end such a job here."""
        if not job.over:
            job.state, job.error = "cancelled", Cancelled()
            self._tell("finished", job)

    def _tell(self, method: str, *arguments: Any) -> None:
        """A listener's own error must not decide a job."""
        try:
            getattr(self._listener, method)(*arguments)
        except Exception:
            log.exception("listener.%s", method)

    def _forget_old(self) -> None:
        over = [job.id for job in self._jobs.values() if job.over]
        for job_id in over[:-_KEPT]:
            del self._jobs[job_id]

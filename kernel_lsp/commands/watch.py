"""``kernel-lsp watch [PATH…]``: every kernel under the paths, validated again when it or its class changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from kernel_lsp import schema, speedup
from kernel_lsp.commands.run_jobs import refuse, settings_from
from kernel_lsp.commands.watch_display import Display, Row, display
from kernel_lsp.commands.watched import Kernel, Survey, find_validation, here, relative
from kernel_lsp.errors import StoreUnusable, UserError
from kernel_lsp.jobs import Job, Jobs, pausing
from kernel_lsp.settings import Settings
from kernel_lsp.store.validations import Validation
from kernel_lsp.watching import Tree, Watcher

REST_SECONDS = 300.0  # without a job, after which the worker is let go; the next change starts one again


def run(options: Any) -> int:
    """Watch until Ctrl-C; the exit status is then 0."""
    paths = [Path(os.path.normpath(here() / name)) for name in options.targets or ["."]]
    try:
        settings_for = settings_from(options, tolerant=True)
        for path in paths:
            settings_for(path)  # what is wrong with the command line's own is raised
        with contextlib.suppress(KeyboardInterrupt):  # before there is a handler for it
            asyncio.run(_watch(paths, settings_for, options))
    except UserError as error:
        return refuse(error, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # another Ctrl-C has nothing left to end
    return 0


async def _watch(paths: list[Path], settings_for: Callable[[Path], Settings], options: Any) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, ended.set)
    with display(ended.set, options.svg) as shown:
        watch = Watch(paths, settings_for, shown, write=options.write, poll=options.poll)
        try:
            starting = loop.create_task(watch.start())
            starting.add_done_callback(lambda task: ended.set() if task.cancelled() or task.exception() else None)
            await ended.wait()
            if starting.done():
                starting.result()
            starting.cancel()
        finally:
            await watch.close()


class Watch:
    """The rows of the table, brought up to date by rounds of changes and by the jobs that these start."""

    def __init__(
        self,
        paths: list[Path],
        settings_for: Callable[[Path], Settings],
        shown: Display,
        *,
        write: bool = True,
        poll: bool = False,
    ) -> None:
        self._paths = paths
        self._settings_for = settings_for
        self._shown = shown
        self._write = write
        self._rows: dict[Path, Row] = {}
        self._survey = Survey(paths, settings_for)
        self._watcher = Watcher(paths, self._changed, shown.warn, poll=poll)
        self._jobs = Jobs(settings_for, self, give_way=True)
        self._queue: list[Row] = []
        self._running: Row | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closing = False
        self._resting: asyncio.TimerHandle | None = None
        self._store_said = False

    async def start(self) -> None:
        """Make the rows of the kernels that are there, and watch from then on."""
        for path in self._paths:
            if not path.exists():
                self._shown.say(f"{relative(path)} is not there yet")
        await self._changed(await self._watcher.start(), None)
        self._shown.started(len(self._rows), self._watcher.polls)
        first = next((row.kernel.source for row in self._rows.values() if row.kernel.source is not None), None)
        if first is not None and not self._jobs.active():
            self._jobs.warm(first)
            self._rest_later()

    async def close(self) -> None:
        """End jobs, workers and watching."""
        self._shown.closing = self._closing = True
        if self._resting is not None:
            self._resting.cancel()
        if self._starting is not None:
            self._starting.cancel()
        await asyncio.gather(self._watcher.close(), self._jobs.close())

    async def _changed(self, tree: Tree, files: set[Path] | None) -> None:
        """A round. ``files`` None: the first one."""
        found = await asyncio.to_thread(self._survey.look, tree)
        self._watcher.watch_also(self._survey.files())
        for path in self._rows.keys() - found.keys():
            row = self._rows.pop(path)
            self._cancel(row)
            self._shown.say(f"{relative(path)} is gone")
        for path, kernel in found.items():
            known = self._rows.get(path)
            row = known or Row(kernel, relative(path), why="" if files is None else "new")
            before, row.kernel = row.kernel, kernel
            if known is not None and before.version == kernel.version:
                continue
            if known is not None:
                row.why = _why(before, kernel)
            self._rows[path] = row
            await self._take_up(row)
        self._rows = {path: self._rows[path] for path in found}
        self._shown.rows(list(self._rows.values()))
        self._next()

    async def _take_up(self, row: Row) -> None:
        """A kernel is new, or another version: what is known of it is shown, else it is validated."""
        self._cancel(row)
        kernel = row.kernel
        if kernel.problem is not None or kernel.source is None:
            row.failed(kernel.problem)
            self._shown.changed(row)
            return
        known = await asyncio.to_thread(self._find, kernel)
        if known is not None:
            lost = speedup.regression(known.measurement, self._settings_for(kernel.path).regression_threshold)
            row.take(known.verdict, known.measurement, _local(known.validated_at), lost)
            self._shown.changed(row, "validated before")
            return
        row.progress = "queued"
        if row.why or kernel.stale:
            self._shown.validating(row)
        self._queue.insert(0 if row.why else len(self._queue), row)
        self._shown.soon()

    def _next(self) -> None:
        if self._starting is None and self._running is None and self._queue and not self._closing:
            self._starting = asyncio.get_running_loop().create_task(self._start_next())

    async def _start_next(self) -> None:
        try:
            await self._in_time()
        finally:
            self._starting = None
        self._start()

    async def _in_time(self) -> None:
        """Wait while nothing is to be validated without being asked for."""
        said = ""
        while self._queue:
            why = await pausing.why(self._settings_for(self._queue[0].kernel.path))
            if not why:
                break
            if why != said:
                self._shown.say(f"validation waits: {why}")
            said = why
            await asyncio.sleep(pausing.AGAIN_SECONDS)

    def _start(self) -> None:
        """One job at a time, what changed last before what was only never validated."""
        if self._running is not None or not self._queue or self._closing:
            return
        row = self._running = self._queue.pop(0)
        kernel, source = row.kernel, row.kernel.source
        assert source is not None
        target = schema.Target(source.as_uri(), kernel.class_name)
        row.job = self._jobs.submit("validate", target, source, kernel=kernel.path, write=self._write)

    def _find(self, kernel: Kernel) -> Validation | None:
        try:
            return find_validation(kernel, self._settings_for(kernel.path))
        except StoreUnusable as error:
            if not self._store_said:
                self._store_said = True
                self._shown.warn(error)
            return None

    def _cancel(self, row: Row) -> None:
        job, row.job, row.progress, row.early = row.job, None, "", ""
        if row in self._queue:
            self._queue.remove(row)
        if job is not None:
            self._running = None
            self._jobs.cancel(job.id)

    def _row(self, job: Job) -> Row | None:
        row = self._rows.get(job.kernel) if job.kernel is not None else None
        return row if row is not None and row.job is job else None

    # What the jobs tell: ``jobs.Listener``.

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        """Show the stage in the job's row."""
        row = self._row(job)
        if row is not None:
            row.progress = "queued" if stage == "queued" else f"{stage} {percentage} %"
            self._shown.soon()

    def verdict(self, job: Job) -> None:
        """Show the verdict before all is checked and timed."""
        row = self._row(job)
        if row is not None and job.report is not None and job.report.candidates:
            row.early = job.report.candidates[-1].verdict.status
            self._shown.soon()

    def finished(self, job: Job) -> None:
        """Show what came of the job, and begin the next."""
        self._rest_later()
        row = self._row(job)
        if row is None or job.state == "cancelled":
            return
        self._running, row.job, row.progress, row.early = None, None, "", ""
        report = job.report
        if job.error is not None or report is None or not report.candidates:
            row.failed(job.error)
        else:
            validated = report.candidates[-1]
            row.take(validated.verdict, validated.measurement, datetime.now().astimezone(), report.regression)
        self._shown.changed(row)
        self._next()

    def _rest_later(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest)

    def _rest(self) -> None:
        if self._jobs.active():
            self._rest_later()
        else:
            self._jobs.rest()


def _why(before: Kernel, now: Kernel) -> str:
    """Which files made a kernel another one: ``norm.py and 2 more changed``."""
    files = [file for file, then in before.reads.items() if file in now.reads and now.reads[file] != then]
    if before.body == now.body and before.fingerprint != now.fingerprint:  # its header alone, which a validation writes
        files = [file for file in files if file != now.path]
    names = [relative(file) for file in sorted(files)] or [relative(now.path)]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more} changed"


def _local(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return None

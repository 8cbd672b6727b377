"""All that the server knows, in one object that is passed to the functions that need it. There are no globals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model.documents import Document, Documents
from ..model.kernels import Kernels
from ..model.records import Record
from ..protocol.client import Client
from ..protocol.connection import Connection
from ..protocol.progress import Progress
from .recordings import Recordings
from .validation_cache import Validations

if TYPE_CHECKING:
    from kernel_lsp.errors import UserError
    from kernel_lsp.jobs import Job, Jobs, Listener
    from kernel_lsp.settings import Settings

_SETTINGS_SECONDS = 5.0


class State:
    """What is known of one client, its documents and its jobs.

    ``show_changes`` is called when something is found out that what is shown may depend on, ``recorded`` when other runs of programs were
    found. ``listener`` makes who is told by
    the jobs, once there are any.
    """

    def __init__(
        self,
        connection: Connection,
        show_changes: Callable[[], None],
        recorded: Callable[[], None],
        listener: Callable[[], Listener],
    ) -> None:
        self.connection = connection
        self._listener = listener
        self.progress = Progress(connection)
        self.documents = Documents()
        self.kernels = Kernels()
        self.validations = Validations(self.settings_for, show_changes, self.report_once)
        self.recordings = Recordings(recorded)
        self.records: dict[tuple[Path, str], Record] = {}  # by source file and class
        self.trusted = True
        self.paused = False  # no background work: nothing is validated on save, no worker is started early
        self.command_links = False  # the client follows links to commands in a hover
        self.review = False  # the client shows a proposed kernel before it replaces one
        self.settings_asked: Any = (
            None  # the future of the last question to the client for its settings, until answered
        )
        self.settings_asked_at = 0.0  # of time.monotonic()
        self.initial_settings: dict[str, Any] = {}  # given at initialization
        self.editor_settings: dict[Path | None, dict[str, Any]] = {}  # by workspace folder; None: any
        self.jobs: Jobs | None = None
        self.report_folder: Path | None = None
        self.reports: dict[tuple[Path, str], Path] = {}  # the pages shown, by source file and class
        self.model_hint: tuple[Path, str] | None = None  # the class that says that no language model is here
        self.model_hinted = False  # once a session
        self.downloads: dict[str, Callable[[], None]] = {}  # under way, by progress token: what ends them
        self.background: set[asyncio.Task[Any]] = set()  # kept until they are done
        self._settings: dict[Path, tuple[float, Settings]] = {}
        self._reported: set[str] = set()

    @property
    def client(self) -> Client:
        """What the client can do."""
        return self.connection.client

    @property
    def closing(self) -> bool:
        """Whether the client is about to leave: nothing new is begun then."""
        return self.connection.closing

    def settings_for(self, path: Path) -> Settings:
        """The settings in force for a file. Kept for a second: every lens of a long file asks for them."""
        folder = path.parent
        known = self._settings.get(folder)
        now = time.monotonic()
        if known is not None and now - known[0] < 1.0:
            return known[1]
        from kernel_lsp.settings import load

        settings, problems = load(path, self.given_settings(path), trusted=self.trusted)
        self._settings[folder] = (now, settings)
        for problem in problems:
            self.report_once(problem)
        return settings

    def given_settings(self, path: Path) -> dict[str, Any]:
        """What the editor says for a file: of the innermost workspace folder that holds it, else without a folder."""
        inside = [folder for folder in self.editor_settings if folder is not None and path.is_relative_to(folder)]
        folder = max(inside, key=lambda folder: len(folder.parts), default=None)
        return {**self.initial_settings, **self.editor_settings.get(folder, {})}

    async def settings_arrive(self) -> None:
        """Wait until the client has sent its settings. A client that is slow to answer works with those given so far."""
        while self.settings_asked is not None and time.monotonic() < self.settings_asked_at + _SETTINGS_SECONDS:
            await asyncio.sleep(0.01)

    def forget_settings(self) -> None:
        """Read settings anew when they are next asked for; what is wrong with them is said again."""
        self._settings.clear()
        self._reported.clear()

    def report_once(self, problem: UserError) -> None:
        """Into the client's log, once until the settings change."""
        if str(problem) not in self._reported:
            self._reported.add(str(problem))
            self.connection.log_message(str(problem), "warning")

    def start_jobs(self) -> Jobs:
        """The queue, made when first needed: what it imports is not needed before."""
        if self.jobs is None:
            from kernel_lsp.jobs import Jobs
            from kernel_lsp.store import sessions

            sessions.name("serve")
            self.jobs = Jobs(self.settings_for, self._listener(), give_way=True)
        return self.jobs

    def active_jobs(self) -> list[Job]:
        """Jobs that wait or run."""
        return self.jobs.active() if self.jobs is not None else []

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that is kept until it is done, and cancelled when the server ends."""
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        return task

    def record(self, path: Path, class_name: str) -> Record | None:
        """What this session knows of a class; None where nothing was asked for it."""
        return self.records.get((path, class_name))

    def running(self, path: Path, class_name: str) -> Record | None:
        """The record of a class whose job is not over."""
        record = self.records.get((path, class_name))
        return record if record is not None and record.job is not None and not record.job.over else None

    def document_at(self, path: Path) -> Document | None:
        """The open document of a file."""
        return next((d for d in self.documents if d.path == path), None)

"""All that the server knows, in one object that is passed to whoever needs it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .client import Client
from .documents import Document, Documents
from .kernels import Kernels
from .recordings import Recordings
from .validations import Validations

if TYPE_CHECKING:
    from kernel_lsp.errors import UserError
    from kernel_lsp.jobs import Job, Jobs
    from kernel_lsp.settings import Settings

    from .app import Server
    from .follow_up import FollowUp
    from .models import Download

_SETTINGS_SECONDS = 5.0


@dataclass
class Record:
    """What this session did for one class: its job, and how the last one ended.

    ``fingerprint`` and ``text`` are the class's and the document's when the job began: what tells whether a result
    still holds.
    """

    job: Job | None = None
    asked: bool = False  # by a person, not by a save
    fingerprint: str | None = None
    text: str = ""
    stage: str = ""
    message: str = ""
    percentage: int = 0
    ended_at: str = ""  # ISO 8601, UTC


@dataclass
class State:
    """Passed to every feature; there are no globals."""

    server: Server
    client: Client = field(default_factory=Client)
    documents: Documents = field(default_factory=Documents)
    kernels: Kernels = field(default_factory=Kernels)
    validations: Validations = field(init=False)
    recordings: Recordings = field(init=False)
    follow_up: FollowUp = field(init=False)
    records: dict[tuple[Path, str], Record] = field(default_factory=dict)
    trusted: bool = True
    paused: bool = False  # no background work: nothing is validated on save, no worker is started early
    review: bool = False  # the client shows a proposed kernel before it replaces one
    settings_asked: Any = None  # the future of the last question to the client for its settings, until it is answered
    settings_asked_at: float = 0.0  # of time.monotonic()
    initial_settings: dict[str, Any] = field(default_factory=dict)  # given at initialization
    editor_settings: dict[Path | None, dict[str, Any]] = field(default_factory=dict)  # by workspace folder; None: any
    jobs: Jobs | None = None
    closing: bool = False
    report_folder: Path | None = None
    reports: dict[tuple[Path, str], Path] = field(default_factory=dict)  # the pages shown, by source file and class
    model_hint: tuple[Path, str] | None = None  # the class that says that no language model is here
    model_hinted: bool = False  # once a session
    downloads: dict[str, Download] = field(default_factory=dict)  # under way, by progress token
    background: set[asyncio.Task[Any]] = field(default_factory=set)  # kept until they are done
    _settings: dict[Path, tuple[float, Settings]] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        from .follow_up import FollowUp  # it needs the state's type

        self.validations = Validations(self)
        self.recordings = Recordings(self)
        self.follow_up = FollowUp(self)

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
        self._settings.clear()
        self._reported.clear()

    def report_once(self, problem: UserError) -> None:
        """Into the client's log, once until the settings change."""
        if str(problem) not in self._reported:
            self._reported.add(str(problem))
            self.server.log_message(str(problem), "warning")

    def start_jobs(self) -> Jobs:
        """The queue, made when first needed: what it imports is not needed before."""
        if self.jobs is None:
            from kernel_lsp.jobs import Jobs
            from kernel_lsp.store import sessions

            from .listener import Listener

            sessions.name("serve")
            self.jobs = Jobs(self.settings_for, Listener(self), give_way=True)
        return self.jobs

    def record(self, path: Path, class_name: str) -> Record | None:
        return self.records.get((path, class_name))

    def running(self, path: Path, class_name: str) -> Record | None:
        """The record of a class whose job is not over."""
        record = self.records.get((path, class_name))
        return record if record is not None and record.job is not None and not record.job.over else None

    def document_at(self, path: Path) -> Document | None:
        return next((d for d in self.documents if d.path == path), None)

    async def close(self) -> None:
        """End every job and worker."""
        self.closing = True
        await self.server.rounds.close()
        for download in list(self.downloads.values()):
            download.cancel()
        for task in list(self.background):
            if not self.downloads:
                task.cancel()
        if self.jobs is not None:
            await asyncio.wait_for(self.jobs.close(), 1.8)
        if self.background:
            await asyncio.wait(self.background, timeout=1.0)

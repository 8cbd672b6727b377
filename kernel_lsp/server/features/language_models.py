"""Getting a language model from inside the editor: a question that shows the licence, a download with progress.

The download is ``kernel-lsp models pull NAME --yes --json-progress`` in a process of its own: killing it is the cancel,
and what was fetched is kept.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
from typing import TYPE_CHECKING, Any

from kernel_lsp.errors import UserError

from ..session.session import Session

if TYPE_CHECKING:
    from kernel_lsp.jobs.process import Process

log = logging.getLogger("kernel_lsp.server")

DOWNLOAD, CANCEL = "Accept and download", "Cancel"
_numbers = itertools.count(1)


def register(session: Session) -> None:
    """Register the command that fetches a model."""

    @session.connection.command("kernelLsp.pullModel")
    def pull(*arguments: Any) -> None:
        """Ask for the licence's acceptance, then fetch the model that suits this machine."""
        ask(session)


def proposal() -> tuple[str, str]:
    """(name to pull, question) for the model that suits this machine: KernelLLM itself, or quantised.

    Raises:
        TooLittleMemory: none does.
    """
    from kernel_lsp.hub.catalogue import CATALOGUE, needed_bytes
    from kernel_lsp.hub.choosing import gigabytes, propose
    from kernel_lsp.hub.memory import fits, memory_here

    memory = memory_here()
    whole, quantised = (next(m for m in CATALOGUE if bool(m.quantisations) is wanted) for wanted in (False, True))
    model, name, size = whole, whole.name, whole.bytes
    if fits(needed_bytes(size), memory) != "gpu":
        sizes = {q.name: q.bytes for q in quantised.quantisations}
        choice = propose(sizes, memory, quantised.name)
        model, name, size = quantised, f"{quantised.name}:{choice.quantisation}", sizes[choice.quantisation]
    return name, f"Download {model.about} ({name}, {gigabytes(size)})? Its licence: {model.licence_page}"


def ask(session: Session) -> None:
    """Show the licence and, once it is accepted, fetch. A client that cannot be asked is told the command."""
    session.run_in_background(_ask(session))


async def _ask(session: Session) -> None:
    try:
        # Looking at the GPU may take a second: not on the event loop.
        name, question = await asyncio.to_thread(proposal)
    except UserError as error:
        session.connection.show_failure(error.detail_last(), code=type(error).__name__)
        return
    if not session.client.choices:
        said = f"Run `kernel-lsp models pull {name}` in a terminal: it shows the licence first."
        session.connection.show_message(said, "info")
        return
    chosen = await asyncio.wrap_future(session.connection.offer(question, "info", [DOWNLOAD, CANCEL]))
    if getattr(chosen, "title", None) == DOWNLOAD and not session.closing:
        await Download(session, name).run()


class Download:
    """One download. ``session.downloads`` holds what ends those under way, by their progress token."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.token = f"pull-{next(_numbers)}"
        self.error = ""
        self.path = ""
        self.ended = asyncio.Event()
        self.cancelled = False
        self.process: Process | None = None

    async def run(self) -> None:
        """Fetch the model in a process of its own, with a progress bar, and tell the user how it ended."""
        from kernel_lsp.jobs.process import Process

        session = self.session
        session.downloads[self.token] = self.cancel
        session.progress.begin(self.token, f"Downloading {self.name}")
        command = [
            sys.executable,
            "-P",
            "-m",
            "kernel_lsp.cli",
            "models",
            "pull",
            self.name,
            "--yes",
            "--json-progress",
        ]
        try:
            self.process = await Process.start(command, None, self._line, self._log, lambda _: self.ended.set())
            await self.ended.wait()
        except OSError as error:
            self.error = str(error)
        finally:
            if self.process is not None:
                await self.process.kill()
            session.downloads.pop(self.token, None)
        said = f"{self.name} is here: {self.path}" if self.path else "Cancelled" if self.cancelled else self.error
        session.progress.end(self.token, said)
        if self.path:
            session.model_hint = None
            session.show_changes()
        elif not self.cancelled and not session.closing:
            text = self.error or f"{self.name} could not be downloaded; the log says why."
            session.connection.show_failure(text)
        session.connection.log_message(f"{self.token}: {said}", "info")

    def cancel(self) -> None:
        """End the process; what was fetched is kept."""
        self.cancelled = True
        self.ended.set()

    def _line(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if "error" in told:
            self.error = str(told["error"]["message"])
        elif told.get("path"):
            self.path = told["path"]
        else:
            percentage = round(100 * float(told.get("fraction") or 0.0))
            self.session.progress.report(self.token, str(told.get("message", "")), percentage)

    def _log(self, line: bytes) -> None:
        log.info("%s: %s", self.token, line.decode("utf-8", "replace"))

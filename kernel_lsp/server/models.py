"""Getting a language model from inside the editor: one quiet hint, a code action, a download with progress.

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

from lsprotocol import types

from kernel_lsp.errors import AttributeAssigned, NotExportable, NothingToLower, NotWritable, UserError

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job
    from kernel_lsp.jobs.process import Process

    from .state import State

log = logging.getLogger("kernel_lsp.server")

TITLE = "Get KernelLLM, a language model that writes kernels"
DOWNLOAD, CANCEL = "Accept and download", "Cancel"
RECALL, SYNTHESIZER = "recall", "synthesizer"
_numbers = itertools.count(1)


def register(state: State) -> None:
    @state.server.command("kernelLsp.pullModel")
    def pull(*arguments: Any) -> None:
        """Ask for the licence's acceptance, then fetch the model that suits this machine."""
        ask(state)


def note(state: State, job: Job) -> None:
    """Keep or drop the hint at language models after a job.

    The first generation in a session that went without a language model carries it, until the next job is over.
    """
    state.model_hint = None
    sources = job.report.sources if job.report is not None else []
    could_help = _could_help(job)
    asked = [source.generator for source in sources if source.generator != RECALL]
    alone = job.kind == "generate" and asked == [SYNTHESIZER] and could_help
    if alone and not state.model_hinted and not state.settings_for(job.path).generators:
        state.model_hinted, state.model_hint = True, (job.path, job.target.class_name)
        state.server.log_message(words(), "info")


def _could_help(job: Job) -> bool:
    """Whether a model's candidates would have been asked for: without a GPU they are not once a kernel is correct."""
    if isinstance(job.error, (NothingToLower, NotExportable, AttributeAssigned, NotWritable)):
        return True
    report = job.report
    on_gpu = report is not None and report.device is not None and report.device.kind == "cuda"
    return job.state == "done" and report is not None and (on_gpu or report.chosen is None)


def words() -> str:
    return (
        "No language model is here, so only the synthesizer proposed kernels. "
        f"The action “{TITLE}” or `kernel-lsp models pull kernelllm` fetches one."
    )


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


def ask(state: State) -> None:
    """Show the licence and, once it is accepted, fetch. A client that cannot be asked is told the command."""
    task = asyncio.get_running_loop().create_task(_ask(state))
    state.background.add(task)
    task.add_done_callback(state.background.discard)


async def _ask(state: State) -> None:
    def show(kind: types.MessageType, text: str) -> None:
        state.server.window_show_message(types.ShowMessageParams(kind, text))

    try:
        # Looking at the GPU may take a second: not on the event loop.
        name, question = await asyncio.to_thread(proposal)
    except UserError as error:
        show(types.MessageType.Error, str(error))
        return
    if not state.client.choices:
        show(types.MessageType.Info, f"Run `kernel-lsp models pull {name}` in a terminal: it shows the licence first.")
        return
    actions = [types.MessageActionItem(DOWNLOAD), types.MessageActionItem(CANCEL)]
    params = types.ShowMessageRequestParams(types.MessageType.Info, question, actions)
    chosen = await asyncio.wrap_future(state.server.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, seconds=None))
    if getattr(chosen, "title", None) == DOWNLOAD and not state.closing:
        await Download(state, name).run()


class Download:
    """One download. ``state.downloads`` holds those under way, by their progress token."""

    def __init__(self, state: State, name: str) -> None:
        self.state = state
        self.name = name
        self.token = f"pull-{next(_numbers)}"
        self.error = ""
        self.path = ""
        self.ended = asyncio.Event()
        self.cancelled = False
        self.process: Process | None = None

    async def run(self) -> None:
        from kernel_lsp.jobs.process import Process

        server = self.state.server
        self.state.downloads[self.token] = self
        server.job_progress.begin(self.token, f"Downloading {self.name}")
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
            self.state.downloads.pop(self.token, None)
        said = f"{self.name} is here: {self.path}" if self.path else "Cancelled" if self.cancelled else self.error
        server.job_progress.end(self.token, said)
        if self.path:
            self.state.model_hint = None
            server.refresher.soon(0.0)
        elif not self.cancelled and not self.state.closing:
            text = self.error or f"{self.name} could not be downloaded; the log says why."
            server.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))
        server.log_message(f"{self.token}: {said}", "info")

    def cancel(self) -> None:
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
            self.state.server.job_progress.report(self.token, str(told.get("message", "")), percentage)

    def _log(self, line: bytes) -> None:
        log.info("%s: %s", self.token, line.decode("utf-8", "replace"))

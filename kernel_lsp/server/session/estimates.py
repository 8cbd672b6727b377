"""What kernels are estimated to gain: asked of an idle worker, class by class, after a time without edits, saves and commands.

An estimate is kept for the class as it is, its example inputs and the settings, and shown for nothing else. Whatever the user does
ends the one under way; no job waits for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_lsp.analysis import ModuleClass
from kernel_lsp.errors import Cancelled, UserError

from ..model.documents import Document
from .changed import is_unsaved, saved_classes
from .class_states import has_inputs
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.class_schema import Estimate, TorchHint

log = logging.getLogger("kernel_lsp.server")


class Estimates:
    """Kept for a session: by source file and class what it holds for, and the estimate, None where there is none."""

    def __init__(self, state: State, show_changes: Callable[[], None]) -> None:
        self._state = state
        self._show_changes = show_changes
        self._known: dict[tuple[Path, str], tuple[Any, Estimate | None]] = {}
        self._around: dict[
            str, tuple[int, str]
        ] = {}  # URI → generation of the documents, digest of what is in no class
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    def of(self, document: Document, c: ModuleClass) -> Estimate | None:
        """The estimate for a class as it is now."""
        known = self._known.get((document.path, c.name))
        return known[1] if known is not None and known[0] == self._key(document, c) else None

    def worth_it(self, document: Document, c: ModuleClass) -> Estimate | None:
        """The same, where it promises as much as the setting asks for."""
        least, found = self._state.settings_for(document.path).estimate_above, self.of(document, c)
        return found if found is not None and found.speedup and 0 < least <= found.speedup else None

    def hints(self, document: Document, c: ModuleClass) -> list[TorchHint]:
        """What torch does slowly in the class, where the setting asks for that."""
        found = self.of(document, c) if self._state.settings_for(document.path).torch_hints else None
        return found.hints if found is not None else []

    def interrupt(self) -> None:
        """The user did something: what is asked is dropped, and asked again when they rest."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        self.rest()

    def rest(self, seconds: float | None = None) -> None:
        """Begin after so many seconds; by default after those that the settings say of an idle editor."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        document = next((one for one in self._state.documents if self._wanted(one)), None)
        if document is None or self._asking is not None or self._state.closing:
            return
        if seconds is None:
            seconds = self._state.settings_for(document.path).validate_when_idle
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _wanted(self, document: Document) -> bool:
        settings = self._state.settings_for(document.path)
        asked = settings.estimate_above > 0 or settings.torch_hints
        return asked and settings.validate_when_idle > 0 and not document.is_kernel_file

    def _look(self) -> None:
        self._timer = None
        if self._may_begin() and self._asking is None:
            self._asking = self._state.run_in_background(self._ask_all())

    def _may_begin(self) -> bool:
        state = self._state  # where it may not, what happens next looks again
        return not (state.closing or state.paused or not state.trusted or state.active_jobs())

    async def _ask_all(self) -> None:
        mine = asyncio.current_task()
        again: float | None = None
        try:
            while (found := await self._next()) is not None:
                from kernel_lsp.jobs import pausing

                document, c = found
                if await pausing.why(self._state.settings_for(document.path)):
                    again = pausing.AGAIN_SECONDS
                    return
                if not self._may_begin():
                    return
                await self._ask(document, c)
        finally:
            if self._asking is mine:
                self._asking = None
                if again is not None:
                    self.rest(again)

    async def _next(self) -> tuple[Document, ModuleClass] | None:
        """A class of an open document, saved and without a kernel, whose estimate is not known."""
        async for document, c, s in saved_classes(self._state, self._wanted):
            if s.kernel is not None or s.running is not None or s.error is not None or s.no_kernel or c.duplicate:
                continue
            known = self._known.get((document.path, c.name))
            new = known is None or known[0] != self._key(document, c)
            if new and has_inputs(self._state, document, c):
                return document, c
        return None

    async def _ask(self, document: Document, c: ModuleClass) -> None:
        key = self._key(document, c)
        found: Estimate | None = None
        try:
            found = await self._state.start_jobs().estimate(document.path, c.name)
        except Cancelled:  # a job has begun
            raise asyncio.CancelledError from None
        except UserError as error:  # a generation reports it; an unchanged class is not asked for again
            log.info("no estimate for %s: %s", c.name, error)
        if self._state.document_at(document.path) is not document or is_unsaved(document):
            return
        if key != self._key(document, c):
            return
        self._known[(document.path, c.name)] = (key, found)
        if found is not None:
            self._show_changes()

    def _key(self, document: Document, c: ModuleClass) -> Any:
        """What an estimate holds for: the class and what it uses, its example inputs wherever they are from, and the settings."""
        settings = self._state.settings_for(document.path)
        return (
            self._state.documents.fingerprint(document, c.name),
            self._outside(document),
            repr(settings.inputs_for(document.path, c.name)),
            self._recorded(document, c),
            (settings.estimate_gpu, settings.device, settings.precision, tuple(settings.interpreter_command())),
        )

    def _recorded(self, document: Document, c: ModuleClass) -> str:
        """The example inputs that were recorded, "" where the file has its own."""
        recorded = self._state.recordings.of(document.path, c.name) if c.inputs is None else None
        if recorded is None:
            return ""
        from kernel_lsp.recording import examples

        return repr(examples.table_of(recorded))

    def _outside(self, document: Document) -> str:
        """A digest of a document's text that is in no module class: the functions of example inputs are there."""
        generation = self._state.documents.generation
        known = self._around.get(document.uri)
        if known is None or known[0] != generation:
            text, at = document.source.text, 0
            digest = hashlib.sha256()
            for c in self._state.documents.classes(document):
                start, end = text.offset(c.whole_range.start), text.offset(c.whole_range.end)
                digest.update(text.text[at:start].encode("utf-8", "surrogatepass"))
                at = max(at, end)
            digest.update(text.text[at:].encode("utf-8", "surrogatepass"))
            known = self._around[document.uri] = (generation, digest.hexdigest())
        return known[1]

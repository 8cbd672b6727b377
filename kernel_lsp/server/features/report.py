"""The report of a class: a page of its own, shown in the client, and written again when a later job is over."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp import atomic_write, errors, kernel_file
from kernel_lsp.analysis import module_classes

from ..model.class_state import ClassState, as_it_was
from ..model.documents import Document
from ..session.class_states import class_state, state_of_kernel_file
from ..session.state import State
from ..text.one_line import running_words, wanted_words

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job
    from kernel_lsp.report_page import Facts


_HISTORY = 20  # verdicts of the store that a report shows


async def show_report(state: State, document: Document, class_name: str) -> str | None:
    """Write the page and have the client show it; the id of the job that it is about, None for an earlier session's.

    Raises:
        ReportNotWritten: as the command's error.
    """
    _facts(state, document, class_name)  # what this machine validated is looked up
    await state.validations.settled()
    facts, key = _facts(state, document, class_name)
    path = page_path(state, *key)
    await _write(state, path, facts, key)
    state.connection.show_file(path.as_uri(), f"Validation report: {path}", external=True)
    record = state.record(*key)
    return record.job.id if record is not None and record.job is not None else None


def rewrite_report(state: State, job: Job) -> None:
    """After a job: the page of its class once more, if it was ever shown, for viewers that watch the file."""
    path = state.reports.get((job.path, job.target.class_name))
    document = state.documents.get(job.target.uri)
    if path is None or document is None or state.closing:
        return
    state.run_in_background(_rewrite(state, document, job.target.class_name, path))


async def _rewrite(state: State, document: Document, class_name: str, path: Path) -> None:
    try:
        facts, key = _facts(state, document, class_name)
        await _write(state, path, facts, key)
    except errors.UserError as error:
        state.connection.log_message(str(error), "warning")


async def _write(state: State, path: Path, facts: Facts, key: tuple[Path, str]) -> None:
    """In a thread: colouring long sources takes tenths of a second. Whole or not at all, since viewers watch it."""
    settings, fingerprint = state.settings_for(key[0]), state.documents.fingerprint_at(*key) or ""

    def work() -> None:
        from kernel_lsp.report_page import page
        from kernel_lsp.store import database, history

        with contextlib.suppress(errors.StoreUnusable):  # said when it was asked for a verdict
            store = database.path_for(settings.store, settings.root)
            facts.history = history.of_class(store, key[0], settings.root, key[1], _HISTORY, fingerprint).entries
        text = page(facts)
        try:
            atomic_write.write(path, text)
        except OSError as error:
            raise errors.ReportNotWritten(path=str(path), detail=error.strerror or error) from None

    await asyncio.get_running_loop().run_in_executor(None, work)


def _facts(state: State, document: Document, class_name: str) -> tuple[Facts, tuple[Path, str]]:
    """All that is known of a class, and what its record goes by: the source file and the class.

    Raises:
        NotAKernelFile, SourceMissing: a kernel file no longer says what it is the kernel of.
    """
    from kernel_lsp.report_page import Facts

    path, text, classes = document.path, document.text, state.documents.classes(document)
    s = ClassState()
    if document.is_kernel_file:
        s = state_of_kernel_file(state, document, kernel_file.parse(document.text, document.path))
        assert s.kernel is not None
        path, class_name = kernel_file.find_source(document.path, s.kernel), s.kernel.class_name
        text = state.documents.read(path) or ""
        classes = module_classes(text, path, state.documents.read)
    found = next((c for c in classes if c.name == class_name), None)
    if found is not None and not document.is_kernel_file:
        s = class_state(state, document, found)
    record = state.record(path, class_name)
    job = record.job if record is not None else None
    s = as_it_was(s)
    facts = Facts(
        class_name,
        verdict=s.verdict,
        measurement=s.measurement,
        device=s.device,
        outdated=f"Validated {s.changed}." if s.before is not None else "",
        stale=s.stale,
        claim=s.claim,
        regression=s.regression,
        less_exact=wanted_words(class_name, s),
        error=str(s.error or s.no_kernel or ""),
        running=running_words(s.running) if s.running is not None else "",
        report=job.report if job is not None else None,
        module_path=_shown(state, path),
    )
    if found is not None:
        facts.add_module(text, found.whole_range.start.line, found.whole_range.end.line)
    if s.kernel is not None:
        facts.add_kernel(s.kernel, _shown(state, s.kernel_path) if s.kernel_path is not None else "")
    return facts, (path, class_name)


def _shown(state: State, path: Path) -> str:
    """A path as a user would say it: from the project's folder on."""
    root = state.settings_for(path).root
    return str(path.relative_to(root)) if root is not None and path.is_relative_to(root) else str(path)


def page_path(state: State, source: Path, class_name: str) -> Path:
    """``<Class>.html`` in a folder of this session's; classes of one name in different files get different ones.

    Raises:
        ReportNotWritten: the folder cannot be made.
    """
    if state.report_folder is None:
        try:
            state.report_folder = Path(tempfile.mkdtemp(prefix="kernel-lsp-"))
        except OSError as error:
            where = error.filename or "a temporary folder"
            raise errors.ReportNotWritten(path=where, detail=error.strerror or error) from None
    known = state.reports.get((source, class_name))
    if known is None:
        name, number = file_name(class_name), 1
        taken = {path.name.lower() for path in state.reports.values()}
        while (f"{name}.html" if number == 1 else f"{name}-{number}.html").lower() in taken:
            number += 1
        known = state.report_folder / (f"{name}.html" if number == 1 else f"{name}-{number}.html")
        state.reports[(source, class_name)] = known
    return known


def file_name(class_name: str) -> str:
    """A class's name as the name of a file on any system: ``Outer.Inner`` stays, what is no identifier does not."""
    parts = [re.sub(r"\W+", "_", part, flags=re.ASCII) for part in class_name.split(".") if part]
    return ".".join(parts)[:80] or "report"


def remove_reports(state: State) -> None:
    """Remove this session's pages."""
    if state.report_folder is not None:
        shutil.rmtree(state.report_folder, ignore_errors=True)

"""Diagnostics, pushed to clients that do not pull: on the class name, on the line of an error, in kernel files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types

from kernel_lsp.analysis import ModuleClass, Range
from kernel_lsp.errors.surface import adapted

from ..model.class_state import ClassState
from ..model.documents import Document
from ..protocol.raw import Raw
from ..session.class_states import class_states, has_inputs, settled, state_of_kernel_file
from ..session.session import Session
from ..text.one_line import (
    before_words,
    claim_words,
    no_inputs_words,
    no_model_words,
    stale_words,
    torch_hint_words,
    verdict_words,
)
from ..text.titles import validate_title

SOURCE = "kernel-lsp"
ERROR, WARNING, INFORMATION, HINT = 1, 2, 3, 4
#: by the setting ``validSeverity``: neither a faster nor a slower kernel asks for anything
_CORRECT = {"hint": HINT, "information": INFORMATION, "off": None}


def register(session: Session) -> None:
    """Answer ``textDocument/diagnostic``, for clients that pull."""

    @session.connection.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, types.DiagnosticOptions(True, False, identifier=SOURCE))
    async def pull(params: types.DocumentDiagnosticParams) -> Raw:
        document = await settled(session, params.text_document.uri)
        items = diagnostics(session, document) if document is not None else []
        return Raw({"kind": "full", "items": items})


def diagnostics(session: Session, document: Document) -> list[dict[str, Any]]:
    """The diagnostics of a document as it is now, as JSON data."""
    if document.is_kernel_file:
        return _of_kernel_file(session, document)
    found: list[dict[str, Any]] = []
    for c, s in class_states(session, document):
        found += _of_class(session, document, c, s)
    return found


def _of_class(session: Session, document: Document, c: ModuleClass, s: ClassState) -> list[dict[str, Any]]:
    found = []

    def add(code: str, severity: int, message: str, area: Range = c.name_range) -> None:
        found.append(_diagnostic(document, area, code, severity, message, s.kernel_path))

    if c.duplicate:
        message = f"This file defines {c.name} more than once; a kernel could be for either. Rename one of them."
        add("cannot-validate", HINT, message)
    if s.error is not None:
        here = _is_here(s.error.path, document.path)
        area = document.line_range(s.error.line - 1) if s.error.line and here else c.name_range
        code = "no-example-inputs" if s.lacks_inputs else "cannot-validate"
        add(code, HINT, str(s.error), area)
    elif s.no_kernel:
        add("cannot-validate", HINT, f"No kernel for {c.name}. {s.no_kernel}")
    elif s.kernel is None and s.running is None and _asks_for_inputs(session, document, c):
        add("no-example-inputs", HINT, no_inputs_words(c))
    if session.model_hint == (document.path, c.name):
        add("no-model", HINT, no_model_words())
    if s.kernel is None:
        for hint in session.estimates.hints(document, c):
            add("slow-in-torch", HINT, torch_hint_words(hint))
    if s.kernel is None or s.pending:
        return found
    if s.says_nothing:
        add("kernel-stale", HINT, f"{adapted(str(s.kernel_path))} holds no verdict. Choose “{validate_title(c.name)}”.")
    elif s.outdated:
        add("kernel-outdated", WARNING, verdict_words(c.name, s))
    elif s.stale:
        add("kernel-stale", HINT, stale_words(c.name, s))
    elif s.before is not None:
        add("kernel-not-validated", HINT, before_words(c.name, s))
    elif s.verdict is None:
        add("kernel-not-validated", HINT, claim_words(c.name, s))
    elif not s.correct:
        add("kernel-wrong", ERROR, verdict_words(c.name, s))
    elif s.regression:
        add("kernel-regressed", WARNING, verdict_words(c.name, s))
    elif (severity := _CORRECT[session.settings_for(document.path).valid_severity]) is not None:
        code = "kernel-slower" if s.verdict.status == "slower" else "kernel-valid"
        add(code, severity, verdict_words(c.name, s))
    return found


def _asks_for_inputs(session: Session, document: Document, c: ModuleClass) -> bool:
    """Whether to tell of missing example inputs. Those of a part are not missed where the whole has some."""
    return c.whole is None and not has_inputs(session, document, c) and not document.unparsed


def _is_here(error_path: str | None, path: Path) -> bool:
    return error_path is None or Path(error_path) == path or Path(error_path).name == path.name


def _of_kernel_file(session: Session, document: Document) -> list[dict[str, Any]]:
    """That its class is gone; the verdict's own line where it has one (a compile error): the class carries the rest."""
    from kernel_lsp import kernel_file
    from kernel_lsp.errors import NotAKernelFile

    try:
        parsed = kernel_file.parse(document.text, document.path)
    except NotAKernelFile as error:
        area = document.line_range((error.line or 1) - 1)
        return [_diagnostic(document, area, "cannot-validate", HINT, str(error))]
    s = state_of_kernel_file(session, document, parsed)
    area = document.line_range(0)
    if s.error is not None:
        return [_diagnostic(document, area, "cannot-validate", WARNING, str(s.error))]
    if s.pending:
        return []
    if s.before is not None:
        words = before_words(parsed.class_name, s)
        return [_diagnostic(document, area, "kernel-not-validated", HINT, words)]
    if s.verdict is None:
        here = s.claim is not None and not s.stale
        words = claim_words(parsed.class_name, s) if here else ""
        return [_diagnostic(document, area, "kernel-not-validated", HINT, words)] if words else []
    if s.stale or s.correct or s.outdated:  # the class says that it is out of date
        return []
    line = parsed.body_line + s.verdict.line - 1 if s.verdict.line else parsed.body_line
    message = f"{s.verdict.status}: {s.verdict.reason or 'no reason given'}"
    return [_diagnostic(document, document.line_range(line), "kernel-wrong", ERROR, message)]


def _diagnostic(
    document: Document, area: Range, code: str, severity: int, message: str, kernel: Path | None = None
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "range": document.wire_range(area),
        "severity": severity,
        "code": code,
        "source": SOURCE,
        "message": message,
    }
    if kernel is not None:
        found["data"] = {"kernel": kernel.as_uri()}
    return found

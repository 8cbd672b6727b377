"""Code actions on a class statement or its forward signature."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from kernel_lsp.analysis import ModuleClass, Range
from kernel_lsp.errors import UntrustedWorkspace
from kernel_lsp.naming import kernel_class

from ..model.class_state import ClassState
from ..model.documents import Document
from ..session.class_states import class_state, settled, state_of_kernel_file
from ..session.state import State
from ..text import titles
from .edits import example_inputs, use_kernel, workspace_edit

REWRITE, REFACTOR, FIX = (
    types.CodeActionKind.RefactorRewrite,
    types.CodeActionKind.Refactor,
    types.CodeActionKind.QuickFix,
)

#: what runs the user's code
_RUNNING = ("kernelLsp.generate", "kernelLsp.validate", "kernelLsp.restore")


def register(state: State) -> None:
    """Answer ``textDocument/codeAction``."""
    options = types.CodeActionOptions(code_action_kinds=[FIX, REFACTOR, REWRITE])

    @state.connection.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def code_action(params: types.CodeActionParams) -> list[types.Command | types.CodeAction]:
        document = await settled(state, params.text_document.uri)
        return find(state, document, params) if document is not None else []


def find(state: State, document: Document, params: types.CodeActionParams) -> list[types.Command | types.CodeAction]:
    """The actions for a range; as plain commands for clients that know nothing else."""
    area = Range(document.position(params.range.start), document.position(params.range.end))
    actions: list[types.CodeAction] = []
    if document.is_kernel_file:
        actions = _of_kernel_file(state, document)
    for c in state.documents.classes(document):
        if _touches(area, c.class_range) or (c.forward_range is not None and _touches(area, c.forward_range)):
            actions += _of_class(state, document, c, params.context.diagnostics)
    only = params.context.only
    if only:
        wanted = [_text(kind) for kind in only]
        actions = [a for a in actions if any(_is_kind(_text(a.kind), kind) for kind in wanted)]
    if not state.trusted:
        _disable(state, actions)
    if state.client.action_literals:
        return list(actions)
    return [a.command for a in actions if a.command is not None]


def _touches(area: Range, other: Range) -> bool:
    return area.start <= other.end and other.start <= area.end


def _text(kind: types.CodeActionKind | str | None) -> str:
    return str(getattr(kind, "value", kind) or "")


def _is_kind(kind: str, wanted: str) -> bool:
    return kind == wanted or kind.startswith(wanted + ".") or not wanted


def _of_class(state: State, document: Document, c: ModuleClass, diagnostics: Any) -> list[types.CodeAction]:
    s = class_state(state, document, c)
    argument = {"uri": document.uri, "className": c.name, "version": document.version}
    actions = [_command(titles.generate_title(c.name), REWRITE, "kernelLsp.generate", argument)]
    if s.kernel is not None:
        actions.append(_command(titles.validate_title(c.name), REFACTOR, "kernelLsp.validate", argument))
        use = _use(state, document, c, s)
        actions += [use] if use is not None else []
    if s.kernel is not None or state.record(document.path, c.name) is not None:
        actions.append(_command(f"Show validation report for {c.name}", REFACTOR, "kernelLsp.showReport", argument))
    if s.outdated:
        fixes = [d for d in diagnostics or [] if d.code == "kernel-outdated" and c.name_range == _area(document, d)]
        actions.append(_command(titles.regenerate_title(c.name), FIX, "kernelLsp.generate", argument))
        actions[-1].diagnostics = fixes or None
    if s.regression:
        fixes = [d for d in diagnostics or [] if d.code == "kernel-regressed" and c.name_range == _area(document, d)]
        for title, command in (
            (titles.show_change_title(c.name), "showChange"),
            (titles.restore_title(c.name), "restore"),
        ):
            actions.append(_command(title, FIX, f"kernelLsp.{command}", argument))
            actions[-1].diagnostics = fixes or None
    if s.running is not None and s.running.job is not None:
        title = f"Cancel the kernel job for {c.name}"
        actions.append(_command(title, REFACTOR, "kernelLsp.cancel", {"jobId": s.running.job.id}))
    if state.model_hint == (document.path, c.name):
        actions.append(_command(titles.GET_MODEL, FIX, "kernelLsp.pullModel", {}))
    if c.inputs is None and (
        s.lacks_inputs or state.settings_for(document.path).inputs_for(document.path, c.name) is None
    ):
        if document.unparsed:
            return actions  # its own functions may not be seen
        actions.append(_add_inputs(state, document, c, diagnostics))
    return actions


def _command(title: str, kind: types.CodeActionKind, command: str, argument: dict[str, Any]) -> types.CodeAction:
    return types.CodeAction(title, kind=kind, command=types.Command(title, command, arguments=[argument]))


def _area(document: Document, diagnostic: types.Diagnostic) -> Range:
    return Range(document.position(diagnostic.range.start), document.position(diagnostic.range.end))


def _use(state: State, document: Document, c: ModuleClass, s: ClassState) -> types.CodeAction | None:
    """Only a kernel that this machine found correct as it is now is offered for use."""
    if not s.correct or s.stale or s.kernel_path is None:
        return None
    edits = use_kernel(document, c, s.kernel_path)
    if not edits:
        return None
    title = f"Use {kernel_class(c.name.rpartition('.')[2])} in this file"
    return types.CodeAction(title, kind=REWRITE, edit=workspace_edit(state.client, document, edits))


def _add_inputs(state: State, document: Document, c: ModuleClass, diagnostics: Any) -> types.CodeAction:
    edit = workspace_edit(state.client, document, example_inputs(document, c, state.documents.read))
    fixes = [d for d in diagnostics or [] if d.code == "no-example-inputs" and c.name in d.message]
    return types.CodeAction(f"Add example inputs for {c.name}", kind=FIX, edit=edit, diagnostics=fixes or None)


def _of_kernel_file(state: State, document: Document) -> list[types.CodeAction]:
    """None for a file whose class is gone: there is nothing to validate it against."""
    from kernel_lsp import kernel_file
    from kernel_lsp.errors import KernelOrphaned, NotAKernelFile, SourceMissing

    try:
        parsed = kernel_file.parse(document.text, document.path)
    except NotAKernelFile:
        return []
    if isinstance(state_of_kernel_file(state, document, parsed).error, (KernelOrphaned, SourceMissing)):
        return []
    name = parsed.class_name
    argument = {"uri": document.uri, "className": name, "version": document.version}
    return [_command(titles.validate_title(name), REFACTOR, "kernelLsp.validate", argument)]


def _disable(state: State, actions: list[types.CodeAction]) -> None:
    """In a workspace that is not trusted, show what runs code as not available, with the reason."""
    if state.client.disabled_actions:
        for action in actions:
            if action.command is not None and action.command.command in _RUNNING:
                action.disabled = types.CodeActionDisabled(str(UntrustedWorkspace()))
                action.command = None

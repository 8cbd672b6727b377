"""The edits behind two actions: use the kernel's class in a file, and add a stub of example inputs."""

from __future__ import annotations

import os
from pathlib import Path

from lsprotocol import types

from kernel_lsp.analysis import ModuleClass, Position, Range, Read
from kernel_lsp.analysis.uses import bound_names, instantiations
from kernel_lsp.naming import kernel_class

from ..model.documents import Document
from ..protocol.client import Client


def workspace_edit(client: Client, document: Document, edits: list[tuple[Range, str]]) -> types.WorkspaceEdit:
    """Plain edits of one document, tied to its version where the client can check that."""
    text_edits = [types.TextEdit(document.lsp_range(area), text) for area, text in edits]
    if not client.document_changes:
        return types.WorkspaceEdit(changes={document.uri: text_edits})
    identifier_ = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier_, list(text_edits))])


def module_name(document_path: Path, kernel: Path) -> tuple[str, str] | None:
    """How a file beside ``kernels/`` imports the kernel's module: (package, module); None where no import can name it.

    ``("kernels", "rms_norm_triton")``, with a leading dot inside a package.
    """
    relative = os.path.relpath(kernel.with_suffix(""), document_path.parent)
    parts = Path(relative).parts
    if not parts or not all(part.isidentifier() for part in parts):
        return None
    dot = "." if (document_path.parent / "__init__.py").exists() else ""
    package = dot + ".".join(parts[:-1])
    return (package, parts[-1]) if package else None


def use_kernel(document: Document, c: ModuleClass, kernel: Path) -> list[tuple[Range, str]]:
    """Import the kernel's module after the class and instantiate its class in place of the module's.

    The kernel file imports the class from this file, so this file may be only half executed when the import runs
    (when the kernel is imported first, or this file is the script). Importing the module and looking its class up
    when it is instantiated works in either order; ``from … import <Class>Triton`` would not.
    """
    names = module_name(document.path, kernel)
    if names is None:
        return []
    package, module = names
    new_class = f"{module}.{kernel_class(c.name)}"
    edits: list[tuple[Range, str]] = [(area, new_class) for area in instantiations(document.source, c.name)]
    if module not in bound_names(document.source):
        end = _after(document, c)
        line_end = _line_end(document)
        lead = line_end * 2 if end.column else line_end
        statement = f"from {package} import {module}  # noqa: E402 (it imports {c.name} from this file)"
        edits.append((Range(end, end), f"{lead}{statement}{line_end}"))
    return edits


def _after(document: Document, c: ModuleClass) -> Position:
    """The end of the last line of the module-level statement that holds the class."""
    text = document.source.text
    line = c.whole_range.end.line
    while line + 1 < text.line_count:
        following = text.line(line + 1)
        if following.strip() and not following[0].isspace():
            break
        line += 1
    while line > c.whole_range.end.line and not text.line(line).strip():
        line -= 1
    return Position(line, len(text.line(line)))


def _line_end(document: Document) -> str:
    text = document.text
    return "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"


def example_inputs(document: Document, c: ModuleClass, read: Read) -> list[tuple[Range, str]]:
    """A stub of ``get_inputs_<Class>`` (and ``get_init_inputs_<Class>`` where the constructor needs arguments)."""
    from kernel_lsp.analysis.example_stub import stub  # rarely needed: it would stay in the server's memory

    text, end = document.source.text, _line_end(document)
    functions = stub(document.source, document.path, c.name, read).functions
    last = Position(text.line_count - 1, len(text.line(text.line_count - 1)))
    lead = end if last.column else ""
    return [(Range(last, last), lead + end * 2 + functions.replace("\n", end))]

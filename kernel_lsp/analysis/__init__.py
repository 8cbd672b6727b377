"""What Python source says, without running it: module classes, their inputs, fingerprints.

The standard library and tree-sitter alone. ``module_classes`` and ``fingerprint`` are the way in for one-off
questions; the server keeps a ``Source`` per document and asks ``module_classes_of`` and ``fingerprint_of``.
"""

from __future__ import annotations

from pathlib import Path

from .classes import ModuleClass, imported_with_inputs, is_module_class, module_classes_of
from .fingerprint import fingerprint_of
from .missing import may_have_inputs, not_found, orphaned, syntax_error, unparsed
from .resolve import Read, read_file
from .syntax import Source
from .text import Position, Range, Text

__all__ = [
    "ModuleClass",
    "Position",
    "Range",
    "Read",
    "Source",
    "Text",
    "fingerprint",
    "fingerprint_of",
    "imported_with_inputs",
    "is_module_class",
    "may_have_inputs",
    "module_classes",
    "module_classes_of",
    "not_found",
    "orphaned",
    "read_file",
    "syntax_error",
    "unparsed",
]


def module_classes(source: str, path: Path, read: Read = read_file) -> list[ModuleClass]:
    """The classes in ``source`` that derive from torch.nn.Module, in the order of the text.

    ``path`` is where the source stands (or will stand): imports are resolved from there, through ``read``, which
    gives a file's text or None. Never raises: what does not parse is skipped.
    """
    return module_classes_of(Source(source), path, read)


def fingerprint(source: str, path: Path, class_name: str, read: Read = read_file) -> str:
    """``sha256:…`` of a class and of everything in the workspace that it can reach.

    Comments, docstrings and formatting leave it as it is; any token of behaviour changes it.

    Raises:
        errors.ClassNotFound: the source has no such class.
    """
    return fingerprint_of(source, path, class_name, read)

"""Why a class was not found in a file: a syntax error, or a name that is almost right."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

from .. import nearest
from ..errors import ClassNotFound, KernelOrphaned, SyntaxInvalid
from .classes import identifier
from .outline import outlined
from .parts import SHARED
from .syntax import Source


def syntax_error(text: str, path: Path) -> SyntaxInvalid | None:
    """What this Python says of a source that it cannot parse, with the line; None where it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape, say: the import tells of it
            ast.parse(text, str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return SyntaxInvalid(path=str(path), line=line, detail=getattr(error, "msg", None) or str(error))
    return None


def unparsed(text: str, path: Path) -> SyntaxInvalid | None:
    """The syntax error of a source that this Python and tree-sitter both refuse; None where either takes it."""
    return syntax_error(text, path) if Source(text).has_error else None


def may_have_inputs(text: str, class_name: str, *, shared: bool = True) -> bool:
    """Whether a module with this text may have a function of example inputs for the class; False is certain.

    Names from ``import *``, and names that are put together (``globals()[f"get_inputs_{name}"]``), count as such a function.
    ``shared``: so does ``get_inputs()``. Where it does not, ``import *`` does not either.
    """
    own = {f"get_inputs_{identifier(class_name)}", f"get_inputs_{class_name.rpartition('.')[2]}"}
    own |= {SHARED} if shared else set()
    found = re.findall(r"get_inputs\w*", text)
    return any(name in own or name.endswith("_") for name in found) or (shared and bool(outlined(Source(text)).stars))


def not_found(text: str, path: Path, class_name: str) -> SyntaxInvalid | ClassNotFound:
    """The error for a class that is not in ``text``: the syntax error that hides it, or the nearest name."""
    error = syntax_error(text, path)
    if error is not None:
        return error
    names = [c.name for c in outlined(Source(text)).classes]
    alike = (name for name in names if name.lower() == class_name.lower() or name.endswith(f".{class_name}"))
    near = nearest.nearest(class_name, names) or next(alike, "")
    return ClassNotFound(class_name=class_name, path=str(path), hint=nearest.did_you_mean(near) or ".")


def orphaned(text: str, path: Path, class_name: str, kernel: str, source: str) -> SyntaxInvalid | KernelOrphaned:
    """The same for the class of a kernel file. ``kernel`` and ``source``: what the message calls that file, and ``path``."""
    error = not_found(text, path, class_name)
    if isinstance(error, SyntaxInvalid):
        return error
    return KernelOrphaned(path=kernel, class_name=class_name, source=source, hint=error.values["hint"])

"""What the worker is told of a class's example inputs beyond the functions in its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_lsp import errors
from kernel_lsp.analysis import module_classes, read_file
from kernel_lsp.analysis.classes import identifier


def joined(
    table: dict[str, Any] | None, recorded: dict[str, Any] | None, whole: Callable[[], str | None]
) -> dict[str, Any] | None:
    """The table of pyproject.toml with what was recorded under ``recorded``; None where there is neither.

    With ``first`` it goes before the file's ``get_inputs()``, which is for the class that ``whole`` names.
    """
    if recorded is not None:
        table = {**(table or {}), "recorded": recorded}
    return {**table, "first": True} if table is not None and whole() is not None else table


def whole_of(path: Path, class_name: str) -> str | None:
    """The class, of which this one is a part, that the file's ``get_inputs()`` is for; None where it is for any."""
    text = read_file(path)
    return next((c.whole for c in module_classes(text or "", path) if c.name == class_name), None)


def misfit(error: errors.UserError, text: str, class_name: str) -> str:
    """How the file's ``get_inputs()`` does not fit a class that raised with it; "" where the error comes of something else.

    That is a constructor that got arguments of the class's own, or memory that is short.
    """
    if isinstance(error, errors.NoExampleInputs):
        return "its forward takes other arguments"
    names = {f"get_init_inputs_{identifier(class_name)}", f"get_init_inputs_{class_name.rpartition('.')[2]}"}
    own = isinstance(error, errors.InitFailed) and any(f"{name}(" in text for name in names)
    detail = str(error.values.get("detail", ""))
    return "" if own or "out of memory" in detail else detail

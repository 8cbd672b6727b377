"""``kernel-lsp history [FILE::CLASS | PATH]``: the verdicts on a class over time; see docs/store.md."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_lsp import analysis
from kernel_lsp.commands import html
from kernel_lsp.commands.run_jobs import NOT_VALIDATED, WANTED, print_json, refuse, with_adapted_reasons
from kernel_lsp.commands.store import store_in_use
from kernel_lsp.commands.targets import parts, path_missing, require_class
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import ReportNotWritten, StoreOff, UserError
from kernel_lsp.settings import read_project
from kernel_lsp.store import history
from kernel_lsp.store.history import History


def run(options: Any) -> int:
    """Exit status: 0, also where nothing was validated yet; 2 no such path or class, the store cannot be read, or a file not be written."""
    name, class_name = parts(options.target)
    path = Path(os.path.abspath(name))
    try:
        store = store_in_use(path if path.is_dir() else path.parent)
        if store is None:
            raise StoreOff()
        html.check_all(options.html, options.svg)
        found = _found(store, path, class_name, options.last)
        if not found and class_name:
            require_class(path, class_name)
    except UserError as error:
        return refuse(error, options.json)
    if options.json:
        print_json({"store": str(store), "classes": [with_adapted_reasons(history.to_json(one)) for one in found]})
    elif found:
        from kernel_lsp.commands.history_table import print_histories

        print_histories(found, options.svg)
    missing = not found and not os.path.lexists(path)
    if missing:
        near = path_missing(name, f"::{class_name}" if class_name else "")
        say(near)
    elif not found:
        advice = f"`kernel-lsp generate {shlex.quote(options.target)}` validates what it writes, `kernel-lsp check` what is there."
        say(f"No validation of {options.target} is in the store ({store}). {advice}")
    if options.html is not None:
        from kernel_lsp.report_page.history_page import page

        try:
            html.write_text(options.html, page(found))
        except ReportNotWritten as error:
            say(error)
            return NOT_VALIDATED
        print(f"The page is {html.shown(options.html)}.", file=sys.stderr if options.json else sys.stdout)
    return NOT_VALIDATED if missing else WANTED


def _found(store: Path, path: Path, class_name: str, last: int) -> Sequence[History]:
    """The histories that have an entry."""
    root = _root(path)
    classes = [(path, class_name)] if class_name else history.classes_under(store, path, root)
    every = [history.of_class(store, file, _root(file), name, last, _fingerprint(file, name)) for file, name in classes]
    return [one for one in every if one.entries]


def _root(path: Path) -> Path | None:
    """The project's folder: that of the nearest pyproject.toml."""
    project, _, _ = read_project(path / "any.py" if path.is_dir() else path)
    return project.parent if project is not None else None


def _fingerprint(file: Path, class_name: str) -> str:
    """The class as it is now; "" where that cannot be read."""
    with contextlib.suppress(UserError, OSError, ValueError):
        return analysis.fingerprint(file.read_text("utf-8-sig"), file, class_name)
    return ""

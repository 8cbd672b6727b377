"""The lines below the table of ``check`` and ``validate``: for each class what to do, and whether it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_lsp.checking.formats.places import shown
from kernel_lsp.checking.records import CODES, Checked


def finding_lines(checked: Sequence[Checked], root: Path) -> list[str]:
    """``bn.py:5: Generate it again: …``, with paths relative to ``root``; the table has the reason of a wrong kernel."""
    lines = []
    for one in checked:
        path, line = one.place
        for finding in one.findings:
            said = finding.text if finding.code == CODES["stale"] else finding.action
            lines += [f"{shown(path, root)}:{line}: {said}"] if said else []
    return lines

"""A problem together with the file that holds it on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kernel_lsp.suites.problem import Problem


class Found(NamedTuple):
    """``file`` is absolute; it never goes into a record."""

    problem: Problem
    file: Path
    folder: Path  # absolute: what ``problem.path`` is relative to

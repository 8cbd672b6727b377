"""Errors that are bugs of the synthesizer: where it failed."""

from __future__ import annotations

import os
import traceback

#: An environment variable for tests: where it is set, such an error is raised, else it is told of and the synthesizer does without.
RAISE_FAULTS = "KERNEL_LSP_RAISE_FAULTS"
_PACKAGE = f"synthesis{os.sep}"


def place(error: Exception) -> tuple[str, int, str]:
    """Where in the synthesizer ``error`` was raised, and what it is: (file below kernel_lsp/synthesis, line, text)."""
    frames = traceback.extract_tb(error.__traceback__)
    last = ([frame for frame in frames if _PACKAGE in frame.filename] or frames)[-1]
    return last.filename.rpartition(_PACKAGE)[2], last.lineno or 0, f"{type(error).__name__}: {error}"

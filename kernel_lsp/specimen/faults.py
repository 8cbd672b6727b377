"""From an exception in a user's code to the line it came from and one sentence. Tracebacks go to the log only."""

from __future__ import annotations

import errno
import os
import traceback

from kernel_lsp import errors

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

#: what torch says when CUDA is asked for and cannot be had
_NO_CUDA = (
    "Torch not compiled with CUDA",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "invalid device ordinal",
    "CUDA driver version is insufficient",
    "Cannot access accelerator device",
    "from the 'CUDA' backend",
)


def line_in(path: str, error: BaseException) -> int | None:
    """The deepest line of ``path`` on the way to ``error``; of an error's causes too, where itself has none."""
    path = os.path.realpath(path)
    if isinstance(error, SyntaxError) and error.filename and os.path.realpath(error.filename) == path:
        return error.lineno
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(current.__traceback__)
            if os.path.realpath(frame.filename) == path
        ]
        if lines:
            return lines[-1]
        current = current.__cause__ or current.__context__
    return None


def sentence(error: BaseException, limit: int = 300) -> str:
    """The exception's type and first telling line, in at most ``limit`` characters."""
    text = str(error).strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    said = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return said if len(said) <= limit else said[: limit - 1] + "…"


def no_space(error: BaseException, folder: str) -> errors.TemporaryFolderFull | None:
    """The user error where the disk of ``folder``, the one for temporary files, is full; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _NO_SPACE:
        return None
    return errors.TemporaryFolderFull(folder=folder, detail=error.strerror)


def missing_device(error: BaseException) -> str | None:
    """The device that ``error`` says is not here ("cuda"), or None when it is about something else."""
    text = str(error)
    return "cuda" if any(said in text for said in _NO_CUDA) else None

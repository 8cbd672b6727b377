"""Paths that torch and Triton can read."""

from __future__ import annotations

import os
from pathlib import Path

from kernel_lsp import errors


def check_path(path: Path) -> None:
    """Check that torch and Triton can read a path.

    Raises:
        PathNotUtf8: a part of it is not UTF-8. Where an editor's URI was decoded, such bytes have become U+FFFD.
    """
    for part in path.parts:
        undecoded = any("\udc80" <= character <= "\udcff" for character in part)
        if undecoded or ("\ufffd" in part and not path.exists()):
            raise errors.PathNotUtf8(name=_escaped(str(path)), part=_escaped(part))


def _escaped(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")

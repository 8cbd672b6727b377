"""Writes a file whole or not at all: beside it, then renamed. The standard library alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Replace a file; text is written in UTF-8. What is no regular file (``/dev/stdout``) and what lies in a folder that takes no new files is written in place.

    Raises:
        OSError: the system refuses; what was there before is intact, but for what is written in place.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))  # a link stays a link
    if os.path.lexists(target) and not (target.is_file() and os.access(target.parent, os.W_OK)):
        target.write_bytes(data)
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode(target))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def mode(target: Path) -> int:
    """The permissions of the file being replaced, or those a new file gets."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask

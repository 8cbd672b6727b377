"""What the synthesizer has written of a case, kept for the other tests of a session that look at the same text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path


def of(folder: Path, name: str, write: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """(source, note) of the case ``name``: what is kept in ``folder``, else what ``write`` returns, which is kept then."""
    path = folder / f"{name}.json"
    if not path.exists():
        mine = folder / f".{name}.{os.getpid()}"
        mine.write_text(json.dumps(write()))
        mine.rename(path)  # whole at once: another process may look
    source, note = json.loads(path.read_text())
    return source, note

"""Paths as the formats write them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


def relative(path: Path, root: Path) -> str | None:
    """A path relative to a root, with ``/``; None where it lies outside."""
    real, base = (Path(os.path.realpath(one)) for one in (path, root))
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else None


def shown(path: Path, root: Path) -> str:
    """As ``relative``; the whole path where it lies outside."""
    return relative(path, root) or str(path)


def encoded(path: str) -> str:
    """A relative path as a URI reference (RFC 3986); any bytes that a file's name may have."""
    return quote(os.fsencode(path), safe="/")

"""``kernel-lsp store export --format kernelbook``: verified (module, kernel) pairs in the fields of GPUMODE/KernelBook.

Only classes in files of the user's own projects, read from the file where its fingerprint is still the one that was
validated. The file is written here and sent nowhere.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kernel_lsp.analysis import fingerprint
from kernel_lsp.errors import UserError
from kernel_lsp.store.pairs import Pair, pairs

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = ("site-packages", "dist-packages")
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")
_SECONDS = 10


@dataclass
class Origin:
    """Where a project comes from, as far as its folder says; nothing is asked of a network."""

    name: str
    licences: list[str] = field(default_factory=list)
    commit: str | None = None
    link: str | None = None


def lines(store: Path) -> Iterator[dict[str, Any]]:
    """The pairs, each once: with the latest of its verdicts.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    origins: dict[Path, Origin] = {}
    found: dict[tuple[str, str], Pair] = {}
    for pair in pairs(store):
        key = (pair.target.fingerprint, pair.kernel.body)
        if key not in found or found[key].reached_at < pair.reached_at:
            found[key] = pair
    for pair in found.values():
        file = Path(pair.target.root, pair.target.file)
        root = owned_root(file)
        source = _validated_source(file, pair) if root is not None else None
        if root is not None and source is not None:
            if root not in origins:
                origins[root] = origin_of(root)
            yield _line(pair, source, origins[root])


def owned_root(file: Path) -> Path | None:
    """The folder of the project that a file belongs to; None where it is installed, or belongs to none."""
    real = Path(os.path.realpath(file))
    if any(part in _INSTALLED for part in real.parts):
        return None
    if any(real.is_relative_to(os.path.realpath(folder)) for folder in {sys.prefix, sys.base_prefix} - {"/", "/usr"}):
        return None
    if real.is_relative_to("/usr/lib"):
        return None
    return next((folder for folder in real.parents if any((folder / name).exists() for name in _MARKERS)), None)


def _validated_source(file: Path, pair: Pair) -> str | None:
    """The text of the file; None where it is gone, or its class is another one than was validated."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        now = fingerprint(text, file, pair.target.class_name)
    except (OSError, UnicodeDecodeError, UserError):
        return None
    return text if now == pair.target.fingerprint else None


def origin_of(root: Path) -> Origin:
    """What pyproject.toml, the licence file and git say of a project."""
    link = _git(root, "remote", "get-url", "origin")
    return Origin(root.name, _licences(root), _git(root, "rev-parse", "HEAD"), _without_secrets(link) if link else None)


def _licences(root: Path) -> list[str]:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        said = project.get("license") if isinstance(project, dict) else None
        said = said.get("text") if isinstance(said, dict) else said
        if isinstance(said, str) and said.strip() and "\n" not in said.strip():
            return [said.strip()]
    except (OSError, ValueError):
        pass
    for name in _LICENCES:
        try:
            text = (root / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return [first[:80]] if first else []
    return []


def _git(root: Path, *arguments: str) -> str | None:
    """None where git is not there, or has no answer."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _without_secrets(link: str) -> str:
    """An address without the name, password or token that may stand in it."""
    if "://" not in link:  # git@host:owner/name, or a path of this machine
        _, at, rest = link.rpartition("@")
        return rest if at else Path(link).name
    try:
        parts = urlsplit(link)
    except ValueError:  # git takes what is no address
        return ""
    if parts.scheme == "file":
        return Path(parts.path).name
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _line(pair: Pair, source: str, origin: Origin) -> dict[str, Any]:
    """KernelBook's fields. What it has of a repository's fame is not known here; ``kernel_lsp`` is ours."""
    identity = hashlib.sha256(f"{pair.target.fingerprint}\n{pair.kernel.body}".encode()).hexdigest()
    return {
        "repo_name": origin.name,
        "module_name": pair.target.class_name,
        "entry_point": pair.target.class_name,
        "python_code": source,
        "pytorch_code": source,
        "triton_code": pair.kernel.source,
        "original_triton_code": pair.kernel.source,
        "synthetic": False,
        "uuid": int(identity[:13], 16),  # a number that JSON readers keep exactly
        "licenses": origin.licences,
        "stars": None,
        "sha": origin.commit,
        "repo_link": origin.link,
        "kernel_lsp": {
            "file": pair.target.file,
            "fingerprint": pair.target.fingerprint,
            "body": pair.kernel.body,
            "generator": pair.kernel.generator,
            "status": pair.status,
            "validated_at": pair.reached_at,
            "device": pair.device,
            "torch": pair.torch,
            "triton": pair.triton,
            "version": pair.version,
            "bounds": pair.bounds,
            "error": pair.error,
            "over_eager": pair.over_eager,
        },
    }

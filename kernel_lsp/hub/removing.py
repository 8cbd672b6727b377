"""Removing a model from the cache: what would go, how much that frees, and doing it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.errors import ModelNotHere
from kernel_lsp.hub import cache, listing
from kernel_lsp.hub.catalogue import Wanted
from kernel_lsp.hub.failures import need_huggingface_hub


@dataclass(frozen=True)
class Removal:
    """``execute()`` frees ``bytes`` bytes. ``what``: in words, for the question."""

    repository: str
    what: str
    bytes: int
    execute: Callable[[], None]


def removal(want: Wanted) -> Removal:
    """What removing it means.

    One quantisation of several goes alone; otherwise everything of the repository goes, unfinished downloads included.

    Raises:
        ModelNotHere: it is not in the cache.
        HubPackageMissing: huggingface_hub is not installed.
    """
    for repository in want.repositories:
        folder = cache.repository_folder(repository)
        if not folder.is_dir():
            continue
        if not want.part:
            return _whole(repository, folder)
        files = _quantised(folder)
        label = listing.matching(want.part, files)
        if label is not None:
            return _one(repository, folder, label, files[label]) if len(files) > 1 else _whole(repository, folder)
    raise ModelNotHere(name=want.name, folder=str(cache.cache_folder()))


def _whole(repository: str, folder: Path) -> Removal:
    need_huggingface_hub()
    from huggingface_hub import scan_cache_dir

    # Counted here: the scan knows nothing of unfinished downloads.
    size = sum(path.lstat().st_size for path in (folder / "blobs").glob("*") if not path.is_symlink())
    scanned = next((r for r in scan_cache_dir(cache.cache_folder()).repos if r.repo_path == folder), None)
    commits = [revision.commit_hash for revision in scanned.revisions] if scanned else []
    if commits:
        strategy = scan_cache_dir(cache.cache_folder()).delete_revisions(*commits)
        size = max(size, strategy.expected_freed_size)

    def execute() -> None:
        if commits:
            strategy.execute()
        shutil.rmtree(folder, ignore_errors=True)  # a download that never got as far as a snapshot

    return Removal(repository, repository, size, execute)


def _quantised(folder: Path) -> dict[str, list[str]]:
    """Quantisation → its files, as named in the snapshots; none where its download was not finished."""
    names = {
        path.relative_to(snapshot).as_posix() for snapshot in _snapshots(folder) for path in snapshot.rglob("*.gguf")
    }
    whole = listing.quantisations(names)
    return whole | {label: [] for label in cache.unfinished(folder) if label and label not in whole}


def _one(repository: str, folder: Path, label: str, files: list[str]) -> Removal:
    """The files of one quantisation; contents that another name still uses stay."""
    snapshots = _snapshots(folder)
    links = [snapshot / name for snapshot in snapshots for name in files if (snapshot / name).is_symlink()]
    links += [snapshot / name for snapshot in snapshots for name in files if (snapshot / name).is_file()]
    others = {
        path.resolve() for snapshot in snapshots for path in snapshot.rglob("*") if path.is_file() and path not in links
    }
    contents = {link.resolve() for link in links if link.exists()} - others
    contents |= set(cache.unfinished(folder).get(label, []))

    def execute() -> None:
        for path in [*links, *contents]:
            path.unlink(missing_ok=True)

    return Removal(repository, f"{repository}:{label}", sum(path.stat().st_size for path in contents), execute)


def _snapshots(folder: Path) -> list[Path]:
    return [path for path in (folder / "snapshots").glob("*") if path.is_dir()]

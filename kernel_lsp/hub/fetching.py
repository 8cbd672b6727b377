"""One file from the Hub into the cache: resumed where it broke off, checked against the Hub's checksum.

huggingface_hub's own download starts a large file again after an interruption (since 2.0 it writes to a file of a new
name each time and deletes it when it fails). So what is stored as a large file (LFS) is fetched here with its session,
address and headers into ``blobs/<checksum>.<name>.kernel-lsp.incomplete``, and takes its place when it is whole;
huggingface_hub then finds it and gives it its name. Everything else is left to huggingface_hub.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import __version__
from kernel_lsp.errors import DownloadCorrupt
from kernel_lsp.hub.cache import PARTIAL, repository_folder
from kernel_lsp.hub.failures import is_transient

log = logging.getLogger(__name__)

_PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds before another try; counted anew when bytes have come
_READ = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository at one commit.

    Attributes:
        blob: its name in the cache's ``blobs``: SHA-256 of a large file, else git's SHA-1.
        large: stored as a large file.
    """

    path: str
    size: int  # bytes
    blob: str
    large: bool


def present_bytes(repository: str, file: RemoteFile) -> int:
    """How much of it is in the cache already, whole or not."""
    blobs = repository_folder(repository) / "blobs"
    for path in (blobs / file.blob, partial_path(blobs, file)):
        try:
            return min(path.stat().st_size, file.size)
        except OSError:
            continue
    return 0


def partial_path(blobs: Path, file: RemoteFile) -> Path:
    """Named after the file, too, so that a person, and ``models list``, can tell what it is a part of."""
    return blobs / f"{file.blob}.{file.path.rsplit('/', 1)[-1][-100:]}{PARTIAL}"


def fetch(repository: str, commit: str, file: RemoteFile, on_position: Callable[[str, int], None]) -> Path:
    """Have the file in the cache, and return its path in the snapshot of that commit.

    ``on_position(stage, bytes)`` is told how much of the file is there; the stage is "downloading" or "checking".

    Raises:
        DownloadCorrupt: it arrives damaged twice.
        Exception: what huggingface_hub raises.
    """
    from huggingface_hub import hf_hub_download

    folder = repository_folder(repository)
    blob, pointer = folder / "blobs" / file.blob, folder / "snapshots" / commit / file.path
    if blob.exists() and blob.stat().st_size != file.size:
        blob.unlink()  # cut short by a full disk, or by the process that wrote it
    damage = ""
    for again in (False, True):
        if file.large and not blob.exists():
            partial = partial_path(blob.parent, file)
            partial.parent.mkdir(parents=True, exist_ok=True)
            _stream(repository, commit, file, partial, on_position)
            damage = _damage(partial, file, on_position)
            if damage:
                log.warning("%s of %s: %s", file.path, repository, damage)
                partial.unlink()
                continue
            os.replace(partial, blob)
        if not pointer.exists() or (again and not file.large):
            hf_hub_download(
                repository,
                file.path,
                revision=commit,
                library_name="kernel-lsp",
                library_version=__version__,
                force_download=again and not file.large,
            )
            damage = "" if file.large else _damage(pointer, file, on_position)
        if not damage:
            on_position("downloading", file.size)
            return pointer
    for damaged in (pointer, blob):
        damaged.unlink(missing_ok=True)
    raise DownloadCorrupt(file=file.path, name=repository, detail=damage)


def _stream(
    repository: str, commit: str, file: RemoteFile, partial: Path, on_position: Callable[[str, int], None]
) -> None:
    """Fetch what is missing of ``partial``. A lost connection is taken up again; raises the error if it stays lost."""
    failures = 0
    while True:
        have = partial.stat().st_size if partial.exists() else 0
        on_position("downloading", have)
        if have >= file.size:
            return
        lost: Exception | None = None
        try:
            if not _stream_once(repository, commit, file, partial, have, on_position):
                return
        except Exception as error:
            if not is_transient(error):
                raise
            lost = error
        got = partial.stat().st_size if partial.exists() else 0
        if got >= file.size:
            return
        failures = 0 if got > have else failures + 1
        if failures > len(_PAUSES):
            raise lost or ConnectionError("the server sends no more")
        log.info("%s of %s: broke off at %d of %d bytes (%s)", file.path, repository, got, file.size, lost)
        time.sleep(_PAUSES[max(failures - 1, 0)])


def _stream_once(
    repository: str, commit: str, file: RemoteFile, partial: Path, have: int, on_position: Callable[[str, int], None]
) -> bool:
    """One request. False if the server says that there is nothing beyond what is here."""
    from huggingface_hub import constants, get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    headers = build_hf_headers(library_name="kernel-lsp", library_version=__version__)
    headers["Accept-Encoding"] = "identity"  # a range counts the bytes of the file, not those of its compressed form
    if have:
        headers["Range"] = f"bytes={have}-"
    url = hf_hub_url(repository, file.path, revision=commit)
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
        if response.status_code == 416:
            return False
        hf_raise_for_status(response)
        position = have if response.status_code == 206 else 0  # 200: the server sends it from the start
        with partial.open("ab" if position else "wb") as out:
            for chunk in response.iter_bytes():
                out.write(chunk)
                position += len(chunk)
                on_position("downloading", position)
    return True


def _damage(path: Path, file: RemoteFile, on_position: Callable[[str, int], None]) -> str:
    """What is wrong with the content, "" if it has the size and the checksum that the Hub states."""
    size = path.stat().st_size
    if size != file.size:
        return f"it has {size} bytes, not {file.size}"
    checksum = hashlib.sha256() if file.large else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as content:
        while chunk := content.read(_READ):
            checksum.update(chunk)
            if file.large:
                on_position("checking", content.tell())
    found = checksum.hexdigest()
    return "" if found == file.blob else f"its checksum is {found[:12]}…, not {file.blob[:12]}…"

"""What is in the Hugging Face cache, and whether it is complete. Standard library only; ``find`` takes under 5 ms.

The layout, which huggingface_hub documents: ``models--ORG--NAME/`` with ``refs/main`` (a commit), ``snapshots/COMMIT/``
(links with the files' names) and ``blobs/`` (the contents, by checksum). A name appears in a snapshot only when its
content is whole, so what is missing tells whether a download was finished. For safetensors the header's end is checked
against the file's size, too.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.errors import ModelNameInvalid
from kernel_lsp.hub import listing
from kernel_lsp.hub.catalogue import Kind, Wanted, known_by_repository, wanted

#: How the names of unfinished downloads end: ours (CHECKSUM.NAME.kernel-lsp.incomplete), and huggingface_hub's.
PARTIAL = ".kernel-lsp.incomplete"
_ANY_PARTIAL = ".incomplete"
_TRUE = {"1", "ON", "YES", "TRUE"}
_LONGEST_HEADER = 100 << 20  # bytes, as the safetensors format has it


@dataclass(frozen=True)
class Found:
    """A model in the cache, whole or in part.

    Attributes:
        quantisation: of a GGUF; "" for safetensors, and for another program's unfinished download, which has no name.
        path: what a generator loads: a folder (safetensors) or a file (GGUF, the first part of a split one); the
            repository's folder in the cache while it is not complete.
        bytes: on disk.
        missing: what is missing; "" if it is complete.
    """

    repository: str
    kind: Kind
    quantisation: str
    path: Path
    bytes: int
    missing: str = ""


def cache_folder() -> Path:
    """Where huggingface_hub keeps what it fetches: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME or ~/.cache."""
    environment = os.environ
    home = environment.get("HF_HOME") or os.path.join(
        environment.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface"
    )
    folder = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(os.path.expanduser(folder)))


def offline() -> str:
    """The variable that turns offline mode on, "" if none does; as huggingface_hub reads them."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name):  # the first that is set decides
            return name if os.environ[name].upper() in _TRUE else ""
    return ""


def repository_folder(repository: str) -> Path:
    """Where huggingface_hub keeps ``ORGANISATION/REPOSITORY``, whether it is there or not."""
    return cache_folder() / f"models--{repository.replace('/', '--')}"


def find(name: str) -> Path | None:
    """What a generator loads of a model that is here and complete: a folder (safetensors) or a file (GGUF).

    ``name`` as in ``kernel-lsp models pull``, or a path. Of several quantisations the one that was fetched last.
    """
    path = Path(os.path.expanduser(name))
    if (name.endswith(".gguf") and ":" not in name) or path.is_absolute() or name.startswith("."):
        if path.is_dir():
            return path if not missing_in_folder(path) else None
        return path if path.is_file() and _is_gguf(path) else None
    try:
        want = wanted(name)
    except ModelNameInvalid:
        return path if path.is_dir() and not missing_in_folder(path) else None
    for repository in want.repositories:
        whole = [model for model in _complete(repository, repository_folder(repository)) if _meets(model, want)]
        if whole:
            return max(whole, key=lambda model: _fetched(model.path)).path
    return path if path.is_dir() and not missing_in_folder(path) else None


def found() -> list[Found]:
    """Every language model in the cache that a generator could run, those that are not complete included."""
    models = []
    try:
        folders = sorted(folder for folder in cache_folder().iterdir() if folder.name.startswith("models--"))
    except OSError:
        return []
    for folder in folders:
        repository = folder.name.removeprefix("models--").replace("--", "/")
        whole = _complete(repository, folder)
        models += whole
        if not whole or _partial_bytes(folder):
            models += _in_part(repository, folder)
    return models


def begun(repository: str) -> bool:
    """Whether weights of it are here, all or in part: the licence was shown when they were fetched."""
    folder = repository_folder(repository)
    return bool(_complete(repository, folder)) or _partial_bytes(folder) > 0


def missing_in_folder(folder: Path) -> str:
    """What a folder lacks of a model in the Transformers format; "" if it is whole."""
    try:
        names = set(os.listdir(folder))
    except OSError as error:
        return error.strerror or "the folder"
    if "config.json" not in names:
        return "config.json"
    if not names & {"tokenizer.json", "tokenizer.model"} and not {"vocab.json", "merges.txt"} <= names:
        return "the tokenizer"
    weights = {"model.safetensors"}
    if "model.safetensors.index.json" in names:
        try:
            index = json.loads((folder / "model.safetensors.index.json").read_bytes())
            weights = {str(name) for name in index["weight_map"].values()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return "model.safetensors.index.json (what is there does not parse)"
    absent = sorted(name for name in weights if not _whole_safetensors(folder / name))
    if not absent:
        return ""
    return absent[0] if len(absent) == 1 else f"{len(absent)} of {len(weights)} files of weights"


def _complete(repository: str, folder: Path) -> list[Found]:
    """The complete models of one repository: of the newest snapshot that has any."""
    for snapshot in _snapshots(folder):
        models = []
        if not missing_in_folder(snapshot):
            models.append(Found(repository, "safetensors", "", snapshot, _size(snapshot)))
        names = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*.gguf") if path.exists()]
        for quantisation, files in listing.quantisations(names).items():
            paths = [snapshot / file for file in files]
            if all(_is_gguf(path) for path in paths):
                size = sum(path.stat().st_size for path in paths)
                models.append(Found(repository, "gguf", quantisation, paths[0], size))
        if models:
            return models
    return []


def _in_part(repository: str, folder: Path) -> list[Found]:
    """What a download has left that was not finished, if it was of a language model."""
    known, partial = known_by_repository(repository), _partial_bytes(folder)
    kind: Kind = known.kind if known else "gguf" if repository.lower().endswith("gguf") else "safetensors"
    if kind == "gguf":
        return [
            Found(repository, kind, label, folder, sum(_bytes(path) for path in paths), "the rest of the file")
            for label, paths in unfinished(folder).items()
        ]
    snapshot = next(iter(_snapshots(folder)), None)
    if known is None and not (snapshot and _is_language_model(snapshot)):
        return []
    if not partial and not (snapshot and any(snapshot.glob("*.safetensors"))):
        return []  # a tokenizer or a configuration alone is no download that was begun
    size, missing = (_size(snapshot), missing_in_folder(snapshot)) if snapshot else (0, "the rest of the files")
    return [Found(repository, kind, "", folder, size + partial, missing or "the rest of a newer version")]


def _snapshots(folder: Path) -> list[Path]:
    """That of refs/main first, then the others from new to old."""
    try:
        snapshots = sorted((folder / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        main = (folder / "refs" / "main").read_text().strip() if (folder / "refs" / "main").exists() else ""
    except OSError:
        return []
    return sorted((path for path in snapshots if path.is_dir()), key=lambda path: path.name != main)


def _meets(model: Found, want: Wanted) -> bool:
    if want.kind is not None and model.kind != want.kind:
        return False
    if not want.part:
        return True
    return want.part.lower() == model.quantisation.lower() or want.part.rsplit("/", 1)[-1] == model.path.name


def _fetched(path: Path) -> float:
    return path.stat().st_mtime  # of the content, since a snapshot's names are links


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def unfinished(folder: Path) -> dict[str, list[Path]]:
    """Downloads of a repository that were not finished: by quantisation, or "" where that cannot be told."""
    labelled: dict[str, list[Path]] = {}
    for path in sorted((folder / "blobs").glob("*" + _ANY_PARTIAL)):
        name = path.name.removesuffix(PARTIAL).partition(".")[2]
        label = listing.quantisation_of(name) if name.endswith(".gguf") else ""
        labelled.setdefault(label, []).append(path)
    return labelled


def _partial_bytes(folder: Path) -> int:
    return sum(_bytes(path) for paths in unfinished(folder).values() for path in paths)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # finished, or deleted, meanwhile
        return 0


def _is_language_model(snapshot: Path) -> bool:
    try:
        config = json.loads((snapshot / "config.json").read_bytes())
        return any("CausalLM" in name or "LMHead" in name for name in config.get("architectures") or [])
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _whole_safetensors(path: Path) -> bool:
    """Whether the file is as long as its header says."""
    try:
        status = path.stat()
    except OSError:
        return False
    return _header_fits(str(path.resolve()), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _header_fits(path: str, size: int, changed: int) -> bool:
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(_LONGEST_HEADER, size):
                return False
            header = json.loads(file.read(length))
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        return bool(8 + length + max(ends, default=0) == size)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return False

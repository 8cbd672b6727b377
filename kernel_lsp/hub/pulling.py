"""Fetching a model: ask the Hub, choose what is needed, check that there is room, fetch it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp import __version__, errors
from kernel_lsp.hub import cache, choosing, fetching, listing
from kernel_lsp.hub.catalogue import Kind, Wanted, known_by_repository
from kernel_lsp.hub.failures import explain, is_disk_full, is_offline, is_transient, need_huggingface_hub
from kernel_lsp.hub.fetching import RemoteFile

_API_SECONDS = 30.0
_SPEED_SECONDS = 5.0  # the speed shown is that of the last so many seconds


@dataclass(frozen=True)
class Licence:
    """A model's licence as its card states it."""

    name: str  # as in the model card ("llama3.1"), "not stated" if it says none
    link: str


@dataclass(frozen=True)
class Offer:
    """What the Hub has of a model.

    Attributes:
        commit: that "main" was at; all files are fetched from it.
        variants: quantisation → its files; one entry "" for safetensors.
    """

    wanted: Wanted
    repository: str
    kind: Kind
    commit: str
    variants: dict[str, list[RemoteFile]]
    licence: Licence

    def sizes(self) -> dict[str, int]:
        """Quantisation → bytes of weights."""
        weights = (".safetensors", ".gguf")
        return {
            label: sum(file.size for file in files if file.path.endswith(weights))
            for label, files in self.variants.items()
        }


@dataclass(frozen=True)
class Plan:
    """What ``pull`` fetches."""

    repository: str
    kind: Kind
    quantisation: str
    commit: str
    files: list[RemoteFile] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the model is called on the command line."""
        return f"{self.repository}:{self.quantisation}" if self.quantisation else self.repository

    @property
    def bytes(self) -> int:
        """Bytes of all files, those that are here already included."""
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        """Bytes that are not in the cache yet."""
        return self.bytes - sum(fetching.present_bytes(self.repository, file) for file in self.files)

    @property
    def path(self) -> Path:
        """What a generator loads once it is here: the folder, or the (first) GGUF file."""
        snapshot = cache.repository_folder(self.repository) / "snapshots" / self.commit
        if self.kind == "safetensors":
            return snapshot
        return snapshot / next(file.path for file in self.files if file.path.endswith(".gguf"))


@dataclass(frozen=True)
class Progress:
    """How far a download is; ``total``: bytes of all files of the model."""

    stage: str  # "downloading" or "checking"
    file: str
    done: int  # bytes of all files, what was there before included
    total: int
    speed: float  # bytes per second, 0.0 while unknown


def look_up(want: Wanted, *, offline: str = "") -> Offer:
    """Ask the Hub what there is. ``offline``: what forbids that, "" if nothing does.

    Raises:
        HubPackageMissing: huggingface_hub is not installed.
        HubOffline, HubUnreachable, HubRefused: the Hub is not asked, does not answer, or refuses.
        RepositoryUnknown, RepositoryGated: it has no such repository, or asks for an agreement.
        ModelNotUsable, QuantisationUnknown: the repository has no model, or not the one asked for.
    """
    if offline:
        raise is_offline(want.name, offline)
    need_huggingface_hub()
    from huggingface_hub import HfApi, constants
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils import logging as hub_logging

    disable_progress_bars()  # ours is shown
    hub_logging.set_verbosity_error()
    repository = want.repository
    try:
        api = HfApi(library_name="kernel-lsp", library_version=__version__)
        info = api.model_info(repository, revision="main", files_metadata=True, timeout=_API_SECONDS)
    except Exception as error:
        raise explain(error, repository) from error
    files: dict[str, RemoteFile] = {}
    for sibling in info.siblings or []:
        lfs, blob = sibling.lfs, sibling.blob_id
        if lfs is not None:
            files[sibling.rfilename] = RemoteFile(sibling.rfilename, lfs.size, lfs.sha256, True)
        elif blob is not None and sibling.size is not None:
            files[sibling.rfilename] = RemoteFile(sibling.rfilename, sibling.size, blob, False)
    card = info.card_data.to_dict() if info.card_data else {}
    tags = info.tags or []
    kind, variants = _variants(want, files)
    licence = _licence(repository, card, tags, list(files), constants.ENDPOINT)
    return Offer(want, info.id or repository, kind, info.sha or "main", variants, licence)


def plan(offer: Offer, quantisation: str) -> Plan:
    """``quantisation``: one of the offer's variants."""
    return Plan(offer.repository, offer.kind, quantisation, offer.commit, offer.variants[quantisation])


def pull(plan: Plan, on_progress: Callable[[Progress], None]) -> Path:
    """Fetch what is missing, and return what a generator loads.

    Ctrl-C, or the end of the process in any other way, leaves what was fetched; the next call goes on from there.

    Raises:
        TooLittleDisk, CacheNotWritable: there is no room, or no right to write.
        DownloadInterrupted, DownloadCorrupt: the connection is lost, or a file arrives damaged twice.
        PullRunning: another process fetches the same repository.
        UserError: the Hub refuses, as for ``look_up``.
    """
    need_huggingface_hub()
    choosing.check_disk(plan.name, plan.missing, cache.cache_folder())
    meter = _Meter(plan, on_progress)
    try:
        with _alone(plan):
            for file in plan.files:
                fetching.fetch(plan.repository, plan.commit, file, meter.at(file))
            _point_main_at(plan)
    except errors.UserError:
        raise
    except Exception as error:
        if is_disk_full(error):  # others write to that disk, too
            raise choosing.too_little_disk(plan.name, plan.missing, cache.cache_folder()) from error
        done, total = choosing.gigabytes(meter.done), choosing.gigabytes(plan.bytes)
        if is_transient(error) and meter.done:
            detail = str(explain(error, plan.repository).values.get("detail", error))
            raise errors.DownloadInterrupted(name=plan.name, done=done, total=total, detail=detail) from error
        raise explain(error, plan.repository) from error
    return plan.path


class _Meter:
    """Adds the files up, and tells the speed."""

    def __init__(self, plan: Plan, on_progress: Callable[[Progress], None]) -> None:
        self._there = {file.path: fetching.present_bytes(plan.repository, file) for file in plan.files}
        self._total, self._tell = plan.bytes, on_progress
        self._marks: deque[tuple[float, int]] = deque()

    @property
    def done(self) -> int:
        return sum(self._there.values())

    def at(self, file: RemoteFile) -> Callable[[str, int], None]:
        def position(stage: str, count: int) -> None:
            if stage == "downloading":
                self._there[file.path] = count
            self._tell(Progress(stage, file.path, self.done, self._total, self._speed()))

        return position

    def _speed(self) -> float:
        now, done = time.monotonic(), self.done
        if not self._marks or done < self._marks[-1][1]:  # from the start again
            self._marks.clear()
        if not self._marks or now - self._marks[-1][0] > 0.1:
            self._marks.append((now, done))
        while now - self._marks[0][0] > _SPEED_SECONDS and len(self._marks) > 1:
            self._marks.popleft()
        seconds = now - self._marks[0][0]
        return (done - self._marks[0][1]) / seconds if seconds > 0.5 else 0.0


@contextmanager
def _alone(plan: Plan) -> Iterator[None]:
    """One process at a time fetches a repository: two would write into the same file.

    Raises:
        PullRunning: another process does.
    """
    from filelock import FileLock, Timeout  # comes with huggingface_hub

    folder = cache.cache_folder() / ".locks" / cache.repository_folder(plan.repository).name
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "kernel-lsp.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise errors.PullRunning(name=plan.repository) from None
    except NotImplementedError:  # a file system without locks
        pass
    try:
        yield
    finally:
        lock.release()


def _point_main_at(plan: Plan) -> None:
    """Only now, so that an older version stays in use until the new one is whole."""
    main = cache.repository_folder(plan.repository) / "refs" / "main"
    main.parent.mkdir(parents=True, exist_ok=True)
    fresh = main.with_name("main.kernel-lsp")
    fresh.write_text(plan.commit)
    fresh.replace(main)


def _variants(want: Wanted, files: dict[str, RemoteFile]) -> tuple[Kind, dict[str, list[RemoteFile]]]:
    whole = listing.safetensors_files(files)
    quantised = listing.quantisations(files)
    if want.part:
        label = listing.matching(want.part, quantised)
        if label is None:
            available = ", ".join(quantised) or "no GGUF files"
            raise errors.QuantisationUnknown(name=want.repository, part=want.part, available=available)
        quantised = {label: quantised[label]}
    elif whole and want.kind != "gguf":
        return "safetensors", {"": [files[name] for name in whole]}
    if not quantised:
        raise errors.ModelNotUsable(name=want.repository)
    beside = listing.licence_files(files)
    return "gguf", {
        label: [files[name] for name in [*beside, *names] if name in files] for label, names in quantised.items()
    }


def _licence(repository: str, card: dict[str, object], tags: list[str], names: list[str], endpoint: str) -> Licence:
    """From the model card; where it gives no link, the licence file, else the page that the catalogue knows."""
    name = card.get("license_name") or card.get("license")
    name = name or next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), None)
    if isinstance(name, list):
        name = ", ".join(map(str, name))
    link = card.get("license_link")
    file = next((file for file in listing.licence_files(names) if file.lower().startswith("licen")), None)
    if isinstance(link, str) and link and not link.startswith("http"):
        file, link = link, None  # a file of the repository
    known = known_by_repository(repository)
    page = known.licence_page if known else f"{endpoint}/{repository}"
    return Licence(
        str(name or "not stated"), str(link or (f"{endpoint}/{repository}/blob/main/{file}" if file else page))
    )

"""KernelBench: files ``<number>_<name>.py`` in folders ``levelN``, each with a class ``Model``."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernel_lsp import kernel_file
from kernel_lsp.errors import SuiteEmpty, SuiteFolderMissing
from kernel_lsp.suites.found import Found
from kernel_lsp.suites.problem import Problem

SUITE = "kernelbench"

_FILE = re.compile(r"(\d+)_(.+)\.py")
_LEVEL = re.compile(r"level(\d+)", re.IGNORECASE)

# Results that do not depend on the input say nothing about a kernel. By the file's whole name, so that somebody's own problem
# of the same number is not meant. No record tells it: that what a kernel computes is constant follows from the module's text.
_CONSTANT = {
    "80_Gemm_Max_Subtract_GELU",  # a value less its own mean over one element
    "83_Conv3d_GroupNorm_Min_Clamp_Dropout",  # min(x, 0), then clamped to [0, 1]
    "23_Conv3d_GroupNorm_Mean",  # the mean of what was normalised; at the initial weight and bias only
}


def read(folders: Iterable[Path]) -> list[Found]:
    """The problems of a checkout, of its folder ``KernelBench``, of ``levelN`` folders, or of any folder of such files.

    Ordered by level and number.

    Raises:
        SuiteFolderMissing: there is no such folder.
        SuiteEmpty: no folder holds a problem.
    """
    by_file: dict[tuple[str, str], Found] = {}
    named = [Path(os.path.abspath(folder)) for folder in folders]
    for folder in named:
        if not folder.is_dir():
            raise SuiteFolderMissing(path=str(folder))
        try:
            for one in _problems(folder):
                by_file.setdefault((one.problem.id, os.path.realpath(one.file)), one)
        except OSError:
            raise SuiteFolderMissing(path=str(folder)) from None
    found = _told_apart(list(by_file.values()))
    if not found:
        wanted = "files named <number>_<name>.py, in it or in folders level1, level2, …"
        raise SuiteEmpty(path=", ".join(map(str, named)), detail=wanted)
    return sorted(found, key=lambda one: (one.problem.level or 0, one.problem.number or 0, one.problem.id))


def _told_apart(found: list[Found]) -> list[Found]:
    """Problems of one id in several folders get as much of their folders' paths before it as tells them apart."""
    by_id: dict[str, list[Found]] = {}
    for one in found:
        by_id.setdefault(one.problem.id, []).append(one)
    told = []
    for name, same in by_id.items():
        if len(same) == 1:
            told += same
            continue
        for depth in range(1, 1 + max(len(one.folder.parts) for one in same)):
            ids = ["/".join([*one.folder.parts[1:][-depth:], name]) for one in same]
            if len(set(ids)) == len(ids):
                break
        told += [
            one._replace(problem=dataclasses.replace(one.problem, id=id_)) for one, id_ in zip(same, ids, strict=True)
        ]
    return told


def _problems(folder: Path) -> Iterator[Found]:
    inner = folder / "KernelBench"
    levels = _levels(inner) if inner.is_dir() else []
    for one in levels or _levels(folder) or [folder]:
        level = _LEVEL.fullmatch(one.name)
        for file in sorted(one.iterdir()):
            parts = _FILE.fullmatch(file.name)
            if parts is None or not file.is_file() or kernel_file.looks_like(file):
                continue
            number = int(level[1]) if level else None
            problem = Problem(
                suite=SUITE,
                id=f"level{number}/{file.stem}" if level else file.stem,
                name=file.stem,
                path=file.relative_to(folder).as_posix(),
                class_name="Model",
                level=number,
                number=int(parts[1]),
                trait="constant" if number == 2 and file.stem in _CONSTANT else "",
            )
            yield Found(problem, file, folder)


def _levels(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and _LEVEL.fullmatch(one.name))

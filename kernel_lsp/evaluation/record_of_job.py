"""From a job that is over to the record of its problem."""

from __future__ import annotations

import copy
import datetime
import functools
import platform
import re
import sys
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, errors, schema, speedup
from kernel_lsp.errors.surface import adapted
from kernel_lsp.evaluation.outcomes import FURTHEST, shown_index
from kernel_lsp.evaluation.records import NOT_STRICT, OK, Record
from kernel_lsp.store.sessions import machine
from kernel_lsp.suites.problem import Problem

#: Errors that say something of the machine or the settings: the next problem would meet them as well, so they are
#: the result of none.
NOT_OF_THE_PROBLEM: frozenset[str] = frozenset(
    {
        "GeneratorUnknown",
        "InterpreterMissing",
        "ModelDamaged",
        "ModelMissing",
        "ModelNotSupported",
        "ModelPackageMissing",
        "ModelServerFailed",
        "ModelServerNotNamed",
        "ModelServerRefused",
        "ModelServerUnreachable",
        "ModelTooLarge",
        "ModelUnknown",
        "NoSuchDevice",
        "PackageBroken",
        "PackageMissing",
        "PackageTooOld",
        "SettingInvalid",
    }
)

_STATUS_OF_ERROR = {
    "NothingToLower": "not-lowered",
    "NotWritable": "not-lowered",
    "NoCandidates": "no-candidates",
    "NotExportable": "not-exportable",
    "ArgumentChanged": "not-exportable",
    "AttributeAssigned": "not-exportable",
    "RandomNotComparable": "not-comparable",
    "GpuOutOfMemory": "out-of-memory",
    "HostMemoryShort": "out-of-memory",
    "WorkerTimedOut": "timeout",
    "GpuTaken": "timeout",
    "ModelHostTimedOut": "timeout",
    "WorkerDied": "crashed",
    "ModelHostDied": "crashed",
    "DeviceMissing": "no-device",
}
#: What torch, Python and CUDA say when memory is short, in an error of the user's code.
_OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError", "MemoryError", "DefaultCPUAllocator", "can't allocate memory")

_LACKED_MEMORY = re.compile(
    r"(?i)out of (\w+ )?memory|not enough (\w+ )?memory|too little free memory|OutOfMemoryError"
)

#: what measuring.py says of times that other work may have spoilt
_HELD_UP = re.compile(rf"{schema.MEASURING_ERROR}: (a call|eager) takes ")

#: The statuses that a record can have here; a newer kernel-lsp may know more.
STATUSES = tuple(dict.fromkeys([OK, NOT_STRICT, *_STATUS_OF_ERROR.values(), "failed", *FURTHEST]))


def record_of(
    problem: Problem,
    mode: str,
    report: schema.Report | None,
    error: errors.UserError | None,
    seconds: float,
    hello: dict[str, Any] | None = None,
    folder: Path | None = None,
) -> Record:
    """The record of a problem.

    Args:
        hello: what the worker said of itself.
        folder: that the problem's path is relative to; it is taken out of all texts but the kernel's own.
    """
    shown = shown_index(report) if report is not None else None
    if error is not None:
        status, reason = status_of(error), str(error)
    elif report is not None and shown is not None:
        verdict = report.candidates[shown].verdict
        status, reason = (OK, "") if verdict.status in schema.CORRECT else (verdict.status, adapted(verdict.reason))
        if status == OK and verdict.held_to != "strict":
            status, reason = NOT_STRICT, not_strict(verdict)
    else:
        status, reason = "no-candidates", "No generator proposed a kernel."
    record = Record(
        problem=problem,
        mode=mode,
        status=status,
        reason=reason,
        error=error.to_json() if error is not None else None,
        report=_small(report, shown),
        seconds=round(seconds, 3),
        samples=_samples(report),
        versions=_versions(report, hello or {}),
        machine=machine(),
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
    )
    return Record.from_json(_without_places(record.to_json(), _places(folder)))


def lacked_memory(record: Record) -> bool:
    """Whether a problem ended for want of memory, or has a candidate or torch.compile without a verdict or a time for it."""
    report = record.report or {}
    verdicts = [entry.get("verdict") or {} for entry in report.get("candidates") or []]
    if any(one.get("status") == "out-of-memory" for one in verdicts):
        return True
    measured = [entry.get("measurement") or {} for entry in report.get("candidates") or []]
    texts = [str(one.get(key) or "") for one in measured for key in ("missing", "compiled_missing")]
    texts += [str(one.get("reason") or "") for one in report.get("tried") or []]
    return record.status == "out-of-memory" or any(_LACKED_MEMORY.search(text) for text in texts)


def was_held_up(record: Record) -> bool:
    """Whether no candidate has times since its calls, or eager's beside it, took longer than they should: other work may have been in the way."""
    measured = [entry.get("measurement") or {} for entry in (record.report or {}).get("candidates") or []]
    timed = any(shape.get("kernel") for one in measured for shape in one.get("shapes") or [])
    return not timed and any(_HELD_UP.match(str(one.get("missing") or "")) for one in measured)


def not_strict(verdict: schema.Verdict) -> str:
    """What is said of a kernel that is correct at a lower precision alone."""
    return f"It is correct{speedup.at_precision(verdict.held_to)}, which was asked for; that is not strict."


def status_of(error: errors.UserError) -> str:
    """The status that a job's error gives."""
    known = _STATUS_OF_ERROR.get(type(error).__name__)
    if known is not None:
        return known
    return "out-of-memory" if any(words in str(error) for words in _OUT_OF_MEMORY) else "failed"


def _small(report: schema.Report | None, shown: int | None) -> dict[str, Any] | None:
    """The report as JSON, without what a score does not need and would fill the disk."""
    if report is None:
        return None
    data: dict[str, Any] = copy.deepcopy(schema.to_json(report))
    data["target"]["uri"] = ""
    data["file"] = None
    for index, entry in enumerate(data["candidates"]):
        entry["candidate"]["answer"] = ""
        if index != shown:
            entry["candidate"]["source"] = ""
    return data


def _samples(report: schema.Report | None) -> dict[str, list[int]]:
    """Of each generator what it drew, repetitions included, and how many of that is correct.

    What was not validated, since the time was over, counts as not drawn: whether it is correct is not known.
    """
    sources = report.sources if report is not None else []
    found = {one.generator: [one.samples - one.not_validated, one.correct] for one in sources if one.samples}
    right = (
        [entry for entry in report.candidates if entry.verdict.status in schema.CORRECT] if report is not None else []
    )
    for name in {entry.candidate.generator for entry in right if entry.verdict.held_to != "strict"} & found.keys():
        found[name][1] = sum(e.verdict.held_to == "strict" and e.candidate.generator == name for e in right)
    return found


def _versions(report: schema.Report | None, hello: dict[str, Any]) -> dict[str, str]:
    device = report.device if report is not None else None
    versions = {
        "kernel-lsp": __version__,
        "python": (device.python if device else "") or hello.get("python", "") or platform.python_version(),
        "torch": (device.torch if device else "") or hello.get("torch", ""),
        "triton": (device.triton if device else "") or hello.get("triton", ""),
        "driver": device.driver if device else "",
        "device": device.name if device else "",
    }
    return {name: version for name, version in versions.items() if version}


def _places(folder: Path | None) -> list[tuple[str, str]]:
    """Absolute places of this machine and what stands for them, the longest first."""
    places = {str(Path.home()): "~", sys.prefix: "<python>"}
    if folder is not None:
        for one in {str(folder), str(folder.resolve())}:
            places |= {folder.as_uri() + "/": "", one + "/": "", one: "."}
    return sorted(((place, short) for place, short in places.items() if len(place) > 1), key=lambda pair: -len(pair[0]))


def _without_places(value: Any, places: list[tuple[str, str]]) -> Any:
    if isinstance(value, dict):
        # A candidate's source is a program, which a replacement could break.
        return {key: item if key == "source" else _without_places(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_places(item, places) for item in value]
    if isinstance(value, str):
        for place, short in places:
            value = _whole_place(place).sub(short, value)
    return value


@functools.cache
def _whole_place(place: str) -> re.Pattern[str]:
    """A place where it stands as a path or the beginning of one: ``/root`` neither in ``/data/root`` nor in ``/rooted``."""
    end = "" if place.endswith("/") else r"(?![\w+@~-]|\.\w)"
    return re.compile(r"(?:(?<![\w./~-])|(?<=file://)|(?<=-[IL]))" + re.escape(place) + end)

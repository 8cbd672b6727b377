"""Recordings made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_lsp.recording.records import ClassRecord, Run, Shape
from kernel_lsp.schema import Timing


def tensor(text: str, **further: Any) -> dict[str, Any]:
    return {"tensor": text, "device": "cpu", "order": "contiguous", **further}


def shape(*args: dict[str, Any], calls: int = 100, microseconds: float = 10.0, **further: Any) -> Shape:
    """One kind of call; of a class whose constructor takes nothing."""
    timing = Timing(microseconds, microseconds, microseconds, 10)
    further.setdefault("init", {"args": [], "kwargs": {}})
    return Shape(list(args), further.pop("kwargs", {}), calls=calls, host=timing, **further)


def run_of(file: Path, shapes: list[Shape], name: str = "Double", forward_seconds: float = 1.0, **further: Any) -> Run:
    """A run in which one class was called."""
    record = ClassRecord(name, "double", str(file), calls=sum(s.calls for s in shapes), shapes=shapes)
    record.seconds = sum(s.calls * (s.median or 0.0) for s in shapes) / 1e6
    given = {"command": "python train.py", "script": "train.py", "root": str(file.parent), "at": "2026-01-01T00:00:00"}
    return Run(**(given | further), forward_seconds=forward_seconds, classes=[record])

"""One run from the part files of its processes, and the shapes of a class over several runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.recording.records import ClassRecord, Run, Shape


def read_parts(folder: Path) -> list[dict[str, Any]]:
    """What the program's processes wrote; a file that is damaged is left out."""
    parts = []
    for path in sorted(folder.glob("part-*.json")):
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(path.read_text("utf-8"))
            if isinstance(found, dict):
                parts.append(found)
    return parts


def fill(run: Run, parts: Sequence[dict[str, Any]]) -> None:
    """Put what the parts hold into ``run``."""
    run.processes = len(parts)
    classes: dict[tuple[str, str], ClassRecord] = {}
    for part in parts:
        run.torch = part.get("torch") or run.torch
        run.compiled += part.get("compiled", 0)
        for entry in part.get("classes", []):
            shapes = _shapes(entry)
            run.forward_seconds += sum(_seconds(shape, shape.root_calls) for shape in shapes)
            run.on_gpu = run.on_gpu or any(shape.device_time is not None for shape in shapes)
            if not entry["tracked"]:
                continue
            key = (entry["file"], entry["class"])
            record = classes.setdefault(key, ClassRecord(entry["class"], entry["module"], entry["file"]))
            record.calls += entry["calls"]
            record.others += entry["others"]
            record.kernel_calls += entry["calls"] if entry["kernel"] else 0
            record.shapes = merged([record.shapes, shapes])
    for record in classes.values():
        record.seconds = seconds_of(record)
    run.classes = sorted(classes.values(), key=lambda record: -record.seconds)


def _shapes(entry: dict[str, Any]) -> list[Shape]:
    """The shapes of a class in one process. Sampled calls stand for all: their counts are scaled to the exact one."""
    inits = entry.get("inits", [])
    shapes = []
    for data in entry["shapes"]:
        number = data.get("init")
        if number is None and len(inits) == 1:  # a copy of a module is not constructed
            number = 0
        data = data | {"init": inits[number] if number is not None else None}
        shapes.append(schema.from_json(Shape, data))
    sampled, exact = sum(shape.calls for shape in shapes), entry["calls"] - entry["others"]
    if sampled and exact > sampled:
        for shape in shapes:
            for name in ("calls", "root_calls", "nested_calls", "outside"):
                setattr(shape, name, round(getattr(shape, name) * exact / sampled))
    return shapes


def merged(groups: Iterable[Sequence[Shape]]) -> list[Shape]:
    """The shapes of several groups, equal ones as one, the most time first. The longest series of times stands for all."""
    found: dict[str, Shape] = {}
    for group in groups:
        for shape in group:
            key = json.dumps([shape.args, shape.kwargs, shape.init, shape.modes], sort_keys=True)
            known = found.get(key)
            if known is None:
                found[key] = schema.from_json(Shape, schema.to_json(shape))
                continue
            for name in ("calls", "root_calls", "nested_calls", "outside"):
                setattr(known, name, getattr(known, name) + getattr(shape, name))
            for name in ("host", "device_time"):
                timing, other = getattr(known, name), getattr(shape, name)
                if other is not None and (timing is None or other.runs > timing.runs):
                    setattr(known, name, other)
    return sorted(found.values(), key=lambda shape: (-time_in(shape), -shape.calls))


def seconds_of(record: ClassRecord) -> float:
    """Seconds in a class's calls; those of shapes that are not kept count like the others on average."""
    known = sum(shape.calls for shape in record.shapes)
    total = sum(time_in(shape) for shape in record.shapes)
    return total * (known + record.others) / known if known else 0.0


def time_in(shape: Shape) -> float:
    """Seconds in the calls of one shape: their number times the median, so that warming up does not count."""
    return _seconds(shape, shape.calls - shape.nested_calls)


def _seconds(shape: Shape, calls: int) -> float:
    return calls * (shape.median or 0.0) / 1e6

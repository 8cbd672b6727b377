"""Recorded calls as example inputs, and their description for messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp.recording import files, merging
from kernel_lsp.recording.records import ClassRecord, Run, Shape

_MOSTLY = 0.9  # the share of the time that "most of it" means


@dataclass
class Recorded:
    """What all runs showed of one class. ``shares``: script → share of its forward time."""

    name: str
    shapes: list[Shape]  # the most time first
    calls: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    outside: int = 0  # calls that the kernel in use left to eager
    kernel_calls: int = 0

    @property
    def usable(self) -> bool:
        """Whether example inputs can be made from it."""
        return any(map(is_usable, self.shapes))

    @property
    def scripts(self) -> list[str]:
        """The scripts that were recorded."""
        return list(self.shares)


def recorded_of(file: Path, runs: Sequence[Run]) -> dict[str, Recorded]:
    """Class name → what the runs showed of it, for the classes of one file."""
    here = os.path.realpath(file)
    found: dict[str, Recorded] = {}
    for run in runs:
        for record in run.classes:
            if record.file == here:
                _add(found.setdefault(record.name, Recorded(record.name, [])), run, record)
    return found


def _add(recorded: Recorded, run: Run, record: ClassRecord) -> None:
    recorded.shapes = merging.merged([recorded.shapes, record.shapes])
    recorded.calls += record.calls
    recorded.kernel_calls += record.kernel_calls
    recorded.outside += sum(shape.outside for shape in record.shapes)
    if run.script not in recorded.shares:  # the newest run of a script comes first
        recorded.shares[run.script] = record.seconds / run.forward_seconds if run.forward_seconds else 0.0


def table_for(file: Path, class_name: str) -> dict[str, Any] | None:
    """What the worker makes example inputs from; None where nothing that it could use was recorded."""
    recorded = recorded_of(file, files.find(file, files.default_base())).get(class_name)
    return table_of(recorded) if recorded is not None else None


def table_of(recorded: Recorded) -> dict[str, Any] | None:
    """``{"from": "train.py", "init": {…}, "args": […], "kwargs": {…}}``: the call that most of the time went into."""
    shape = next((shape for shape in recorded.shapes if is_usable(shape)), None)
    if shape is None:
        return None
    return {"from": ", ".join(recorded.scripts), "init": shape.init, "args": shape.args, "kwargs": shape.kwargs}


def is_usable(shape: Shape) -> bool:
    """Whether the call can be made again with its module: the constructor's arguments are plain values, too."""
    if shape.init is None or not can_be_made(shape):
        return False
    return all(map(_is_plain, [*shape.init["args"], *shape.init["kwargs"].values()]))


def can_be_made(shape: Shape) -> bool:
    """Whether the call can be made again, of a module that is there: its arguments are tensors and plain values."""
    given = [*shape.args, *shape.kwargs.values()]
    return any(map(_has_tensor, given)) and all(map(_is_plain, given))


def _has_tensor(value: dict[str, Any]) -> bool:
    return any("tensor" in leaf for leaf in leaves(value))


def _is_plain(value: dict[str, Any]) -> bool:
    return all("other" not in leaf and leaf.get("order") != "other" for leaf in leaves(value))


def leaves(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The leaves of one described argument."""
    for kind in ("list", "tuple"):
        if kind in value:
            for item in value[kind]:
                yield from leaves(item)
            return
    if "dict" in value:
        for item in value["dict"].values():
            yield from leaves(item)
        return
    yield value


def why_not_usable(recorded: Recorded) -> str:
    """What keeps the recorded calls from being example inputs; "" where some can be used."""
    if not recorded.shapes or any(map(is_usable, recorded.shapes)):
        return ""
    shape = recorded.shapes[0]
    if shape.init is None:
        return "its constructor's arguments were not seen"
    for where, values in (
        ("constructor", [*shape.init["args"], *shape.init["kwargs"].values()]),
        ("forward", [*shape.args, *shape.kwargs.values()]),
    ):
        kinds = [
            leaf.get("other", "a sparse tensor") for value in values for leaf in leaves(value) if not _is_plain(leaf)
        ]
        if kinds:
            return f"its {where} takes a {kinds[0].rpartition('.')[2]}"
    return "forward takes no tensors"


def words(recorded: Recorded) -> str:
    """As in ``8 shapes recorded from train.py, 97 % of the time in two. 12 % of train.py's forward.``."""
    times = sorted(distinct(recorded.shapes).values(), reverse=True)
    count, total = len(times), sum(times)
    text = f"{count} {'shape' if count == 1 else 'shapes'} recorded from {', '.join(recorded.scripts)}"
    if count > 2 and total:
        few = next(n for n in range(1, count + 1) if sum(times[:n]) >= _MOSTLY * total)
        if few <= count // 2:
            text += f", {percent(sum(times[:few]) / total)} of the time in {_NUMBERS.get(few, str(few))}"
    parts = [text, *([share_words(recorded)] if share_words(recorded) else [])]
    if recorded.outside:
        parts.append(
            f"{percent(recorded.outside / max(recorded.kernel_calls, 1))} of the kernel's calls fell back to eager"
        )
    return ". ".join(parts) + "."


def distinct(shapes: Sequence[Shape]) -> dict[str, float]:
    """Seconds by what forward is given, whatever the constructor and the modes."""
    found: dict[str, float] = {}
    for shape in shapes:
        text = shape_words(shape)
        found[text] = found.get(text, 0.0) + merging.time_in(shape)
    return found


def share_words(recorded: Recorded) -> str:
    """``12 % of train.py's forward``, of the script of which it is the most; "" where no time was measured."""
    script, share = max(recorded.shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    return f"{percent(share)} of {script}'s forward" if share > 0 else ""


_NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}


def percent(share: float) -> str:
    """``12 %``; small shares with a digit more."""
    value = 100 * min(share, 1.0)
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def shape_words(shape: Shape) -> str:
    """``float32[8, 512] transposed, scale=2.0``: a call's arguments in a line."""
    parts = [_value_words(value) for value in shape.args]
    parts += [f"{name}={_value_words(value)}" for name, value in shape.kwargs.items()]
    return ", ".join(parts)


def _value_words(value: dict[str, Any]) -> str:
    if "tensor" in value:
        order = value.get("order", "contiguous")
        return str(value["tensor"]) + (f" {order}" if order != "contiguous" else "")
    if "list" in value:
        return f"[{', '.join(map(_value_words, value['list']))}]"
    if "tuple" in value:
        return f"({', '.join(map(_value_words, value['tuple']))})"
    if "dict" in value:
        return "{" + ", ".join(f"{name}: {_value_words(item)}" for name, item in value["dict"].items()) + "}"
    if "other" in value:
        return str(value["other"]).rpartition(".")[2]
    return repr(value.get("value"))

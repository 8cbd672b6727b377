"""The recorded calls at whose shapes a kernel is timed, as the worker is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernel_lsp.recording import calls_left_to_eager, examples, files, merging
from kernel_lsp.recording.examples import Recorded
from kernel_lsp.recording.records import Shape

#: kinds of calls that the worker is told of, those with the most time
_MOST = 64
#: what two calls may differ in that take the same time
_ASIDE = ("device", "grad", "below")


def table_for(file: Path, class_name: str) -> dict[str, Any] | None:
    """``table_of`` what was recorded of a class; None where nothing was."""
    recorded = examples.recorded_of(file, files.find(file, files.default_base())).get(class_name)
    return table_of(recorded) if recorded is not None else None


def table_of(recorded: Recorded) -> dict[str, Any] | None:
    """``{"from": "train.py", "seconds": s, "shapes": [{"args", "kwargs", "init", "training", "calls", "seconds"}, …]}``.

    The calls that can be made again and that a kernel may take: none with gradients or under autocast. The most time
    first. A call inside another one of the class is part of that one, and does not count. ``seconds`` of the whole: of all
    calls of the class that were recorded. None where no call is left.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for shape in recorded.shapes:
        calls = shape.calls - shape.nested_calls
        if calls <= 0 or not examples.can_be_made(shape) or calls_left_to_eager.why_outside({}, shape):
            continue
        one = {"args": shape.args, "kwargs": shape.kwargs, "init": shape.init, "training": "training" in shape.modes}
        known = kinds.setdefault(_kind(shape), one | {"calls": 0, "seconds": 0.0})
        known["calls"] += calls
        known["seconds"] += merging.time_in(shape)
    if not kinds:
        return None
    found = sorted(kinds.values(), key=lambda one: (-one["seconds"], -one["calls"]))[:_MOST]
    total = sum(map(merging.time_in, recorded.shapes))
    return {"from": ", ".join(recorded.scripts), "seconds": total, "shapes": found}


def _kind(shape: Shape) -> str:
    """What calls have in common that take the same time: shapes, dtypes, memory order, other arguments, constructor, mode."""
    return json.dumps([_timed(shape.args), _timed(shape.kwargs), shape.init, "training" in shape.modes], sort_keys=True)


def _timed(described: Any) -> Any:
    if isinstance(described, dict):
        is_tensor = "tensor" in described
        return {name: _timed(value) for name, value in described.items() if not (is_tensor and name in _ASIDE)}
    return list(map(_timed, described)) if isinstance(described, list) else described

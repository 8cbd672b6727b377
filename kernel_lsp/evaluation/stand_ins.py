"""Stand-ins: times of eager and torch.compile from another machine, for problems where torch.compile was not timed.

A file of them has one JSON object a line: ``{"problem": "level1/19_ReLU.py", "eager_ms": 2.1, "compile_ms": 1.9}``;
other keys are ignored, but for ``"mode": "train"``: without it they are of modules in eval mode. They know no fingerprint, so they are trusted only where
eager, measured now, agrees.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Literal

from kernel_lsp import schema, speedup
from kernel_lsp.errors import StandInsInvalid
from kernel_lsp.evaluation.outcomes import first_shape, shown

_FIELDS = {"eager": "eager_ms", "default": "compile_ms"}
#: what says of times that they are of modules in eval mode: nothing, or torch.compile's mode, as benchmarks/torch_compile.py has it
_AS_EVAL = {None: "eval", "default": "eval"}

Filled = Literal["filled", "measured", "disagrees", "unknown"]


def read(path: Path, mode: str = "eval") -> dict[str, dict[str, float]]:
    """Problem id ("level1/19_ReLU") → {"eager": µs, "default": µs}, of modules in this mode.

    Raises:
        StandInsInvalid: the file cannot be read, or a line names no problem with times.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        detail = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise StandInsInvalid(path=str(path), detail=detail) from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            problem = entry["problem"].removesuffix(".py")
            times = {one: 1e3 * float(entry[field]) for one, field in _FIELDS.items() if entry.get(field) is not None}
            if _AS_EVAL.get(entry.get("mode"), entry.get("mode")) != mode:
                continue
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            detail = f"line {number} names no problem with times ({type(error).__name__}: {error})"
            raise StandInsInvalid(path=str(path), line=number, detail=detail) from None
        found[problem] = {one: time for one, time in times.items() if 0 < time < math.inf}
    return found


def mark(path: Path) -> str:
    """What is said of a time that comes from this file."""
    return f"stand-in: from {path.name}"


def fill(report: schema.Report, stand_in: dict[str, float], mark: str) -> Filled:
    """Give the shown candidate's first shape the stand-in's time of torch.compile, marked as such.

    "filled"; "measured": there is a time already; "disagrees": eager takes another time here by more than 5 %, so the
    stand-in is not about this machine; "unknown": nothing to compare, or no time to give. All but "filled" change nothing.
    """
    validated = shown(report)
    shape = first_shape(validated) if validated is not None else None
    if shape is None or shape.eager is None or not 0 < shape.eager.median < math.inf:
        return "unknown"
    if shape.compiled is not None:
        return "measured"
    eager, compiled = stand_in.get("eager"), stand_in.get("default")
    if eager is None or compiled is None:
        return "unknown"
    if not speedup.agrees(eager, shape.eager.median):
        return "disagrees"
    shape.compiled = schema.Timing(compiled, compiled, compiled, runs=0)
    shape.kept["default"] = mark
    return "filled"

"""What a kernel file says of itself, as short lines of its header and back as records.

Anyone who writes the file can write these lines, so what is read here is a claim. Whether it was validated on this machine
is for ``store/validations.py`` to say. Headers of earlier versions, which held the whole verdict, are read as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernel_lsp import class_schema, packed_weights, schema
from kernel_lsp.speedup import PRECISIONS, at_precision, error_check_words, factor, precision_words, speedups

#: The keys of a header that a validation replaces; the last four are those of earlier versions.
KEYS = (
    *("verdict", "reason", "not-checked", "validated", "measured", "microseconds", "measured-on", "not-measured"),
    *("device", "measurement", "version", "written"),
)
_TIMES = ("eager", "compiled", "kernel")
_MOST = 160  # characters of a text in the header
_SHOWN = 60  # characters of a name that a claim gives, where it is shown
_INPUT = re.compile(r"([\w.]+)\[([\d, ]*)\]")


@dataclass(frozen=True)
class Claim:
    """A verdict as a header gives it, with what it says of where, when and by which version it was reached."""

    verdict: schema.Verdict
    measurement: schema.Measurement | None = None
    device: schema.Device | None = None
    version: str = ""  # of kernel-lsp
    at: str = ""  # ISO 8601

    @property
    def correct(self) -> bool:
        """Whether the header says of the kernel that it is correct."""
        return self.verdict.status in schema.CORRECT

    @property
    def timed(self) -> bool:
        """Whether the header has a time of the kernel."""
        return self.measurement is not None and any(shape.kernel for shape in self.measurement.shapes)


def said(claim: Claim) -> str:
    """``says it was validated on NVIDIA H100 by kernel-lsp 0.1.0 (9.00× eager)``."""
    where = ""
    if claim.device is not None and claim.device.name:
        where = " on " + _cleaned(claim.device.name)
    by = f" by kernel-lsp {_cleaned(claim.version)}" if claim.version else ""
    timed = claim.measurement.device if claim.measurement is not None and claim.timed else None
    elsewhere = timed is not None and (claim.device is None or timed.name != claim.device.name)
    on = f" on {_cleaned(timed.name)}" if timed is not None and elsewhere else ""
    return f"says it was validated{where}{by} ({figure(claim)}{on})"


def figure(claim: Claim) -> str:
    """``9.00× eager``, ``correct, not timed`` or ``wrong``, as claimed."""
    if not claim.correct:
        return _cleaned(claim.verdict.status)
    eager, _ = speedups(claim.measurement)
    words = precision_words(claim.verdict.held_to)
    kept = f" · {packed_weights.LABEL}" if claim.verdict.keeps_packed_weights else ""
    if eager:
        return f"{factor(eager)} eager" + (f" · {words}" if words else "") + kept
    return f"correct{at_precision(claim.verdict.held_to)}, not timed{kept}"


def timed_elsewhere(claim: Claim) -> str:
    """The times that a header gives for a kernel that was validated here and not timed, as a sentence."""
    device = claim.measurement.device if claim.measurement is not None else None
    on = f" on {_cleaned(device.name)}" if device is not None and device.name else ""
    return f"The file says {figure(claim)}{on}; not measured here."


def _cleaned(text: object) -> str:
    """A text from a header without what an editor would format or follow, and not longer than a name is."""
    cleaned = re.sub(r"[^\w .,:;+/()-]", "", str(text)).strip()
    return cleaned if len(cleaned) <= _SHOWN else cleaned[: _SHOWN - 1] + "…"


def lines(
    verdict: schema.Verdict,
    measurement: schema.Measurement | None,
    device: schema.Device | None,
    version: str,
    at: str,
) -> dict[str, Any]:
    """The part of a header that a validation replaces: each entry is one line."""
    failed = sum(not check.passed for check in verdict.checks)
    elsewhere = error_check_words(verdict)
    table: dict[str, Any] = {
        "verdict": {
            "status": verdict.status,
            "mode": verdict.mode,
            "line": verdict.line,
            "passed": len(verdict.checks) - failed or None,
            "failed": failed or None,
            "error": _rounded(verdict.error, 3),
            "eager_error": _rounded(verdict.eager_error, 3),
            "error_check": elsewhere or None,
            "example_error": _rounded(verdict.example_error, 3) if elsewhere else None,
            "example_eager_error": _rounded(verdict.example_eager_error, 3) if elsewhere else None,
            "precision": verdict.precision or None,
            "keeps_packed_weights": verdict.keeps_packed_weights or None,
        },
        "reason": _cut(verdict.reason) or None,
        "not-checked": not_checked(verdict.limits) or None,
        "validated": {"by": version, "at": at},
    }
    if device is not None:
        table["validated"] |= _device_line(device)
    return {key: value for key, value in table.items() if value is not None} | _times(measurement, device)


def _device_line(device: schema.Device) -> dict[str, str | None]:
    return {"on": device.name, "torch": device.torch or None, "triton": device.triton or None}


def _times(measurement: schema.Measurement | None, device: schema.Device | None) -> dict[str, Any]:
    """At the example inputs, the first of the shapes; up to three lines."""
    shape = measurement.shapes[0] if measurement is not None and measurement.shapes else None
    if measurement is None or shape is None or shape.kernel is None:
        missing = measurement.missing if measurement is not None else ""
        return {"not-measured": _cut(missing)} if missing else {}
    timings = {name: getattr(shape, name) for name in _TIMES}
    table: dict[str, Any] = {
        "measured": {
            "at": measurement.measured_at or None,
            "inputs": "; ".join(spec.text for spec in shape.inputs),
            "roofline": _rounded(shape.roofline_share, 3),
        },
        "microseconds": {
            name: [*(_rounded(value, 5) for value in (t.median, t.low, t.high)), t.runs]
            for name, t in timings.items()
            if t is not None
        },
    }
    if measurement.device is not None and _device_line(measurement.device) != (device and _device_line(device)):
        table["measured-on"] = _device_line(measurement.device)
    return table


def not_checked(limits: Sequence[str]) -> str:
    """What could not be checked, as one line without the reasons, which the report has; each thing once."""
    names = list(dict.fromkeys(map(short, limits)))
    for count in range(len(names), 0, -1):
        rest = len(names) - count
        text = "; ".join(names[:count]) + (f"; {rest} more, see the report" if rest else "")
        if len(text) <= _MOST or count == 1:
            return _cut(text)
    return ""


def short(limit: str) -> str:
    """What was not checked, without why."""
    return re.split(r" \(|, \[|: in memory", limit)[0]


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def read(header: dict[str, Any]) -> Claim | None:
    """What a header claims; None where it holds no verdict, or one that is no record."""
    verdict = _record(schema.Verdict, header.get("verdict"))
    if verdict is None or not isinstance(verdict.status, str):
        return None
    if not verdict.reason and isinstance(header.get("reason"), str):
        verdict.reason = header["reason"]
    verdict.held_to = text if (text := header.get("precision")) in PRECISIONS else "strict"
    validated = header.get("validated")
    if isinstance(validated, dict):
        device = _device(validated, "cuda" if verdict.mode == "gpu" else "interpreter")
        version, at = validated.get("by", ""), validated.get("at", "")
    else:  # as earlier versions wrote it
        device = _record(schema.Device, header.get("device"))
        version, at = header.get("version", ""), header.get("written", "")
    return Claim(verdict, measurement(header, device), device, str(version), str(at))


def measurement(header: dict[str, Any], device: schema.Device | None) -> schema.Measurement | None:
    """The times that a header gives; None where it gives none, or none that are numbers."""
    if "measurement" in header:  # as earlier versions wrote it
        found = _record(schema.Measurement, header["measurement"])
        if found is None or not _sound(found):
            return None
        found.recorded = None  # which no header ever told of
        for shape in found.shapes:
            shape.calls = None
        return found  # type: ignore[no-any-return]
    if isinstance(header.get("not-measured"), str):
        return schema.Measurement(missing=header["not-measured"])
    measured, times = header.get("measured"), header.get("microseconds")
    if not isinstance(measured, dict) or not isinstance(times, dict):
        return None
    shape = schema.ShapeMeasurement(_inputs(str(measured.get("inputs", ""))), roofline_share=measured.get("roofline"))
    for name in _TIMES:
        values = times.get(name)
        if isinstance(values, list) and len(values) == 4:
            setattr(shape, name, schema.Timing(*values))
    on = header.get("measured-on")
    where = _device(on, "cuda") if isinstance(on, dict) else device
    made = schema.Measurement([shape], where, measured_at=str(measured.get("at", "")))
    return made if _sound(made) else None


def _device(table: dict[str, Any], kind: Any) -> schema.Device:
    name, torch, triton = (str(table.get(key, "")) for key in ("on", "torch", "triton"))
    return schema.Device(name, kind, torch=torch, triton=triton)


def _inputs(text: str) -> list[class_schema.TensorSpec]:
    return [
        class_schema.TensorSpec("", [int(size) for size in shape.split(",") if size.strip()], dtype)
        for dtype, shape in _INPUT.findall(text)
    ]


def _record(kind: type, table: Any) -> Any:
    """The dataclass in a table of the header, or None where the table is missing or somebody damaged it."""
    if not isinstance(table, dict):
        return None
    try:
        return schema.from_json(kind, table)
    except (TypeError, AttributeError, ValueError):
        return None


def _sound(found: schema.Measurement) -> bool:
    """Whether all its times can be divided and shown."""
    if not isinstance(found.shapes, list) or not isinstance(found.missing, str):
        return False
    for shape in found.shapes:
        timings = (shape.eager, shape.compiled, shape.kernel, shape.kernel_graph, shape.eager_graph)
        values = [value for t in timings if t is not None for value in (t.median, t.low, t.high)]
        if not all(_positive(value) for value in values):
            return False
        if shape.roofline_share is not None and not _positive(shape.roofline_share):
            return False
    return True


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf

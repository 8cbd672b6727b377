"""From a report to the header of a kernel file."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from kernel_lsp import __version__, claims, schema

_MOST = 160  # characters of a text
_LINE = 80  # characters of a line's share of a list: less than a line has, since items are not broken up
_UNBOUNDED = 2**31 - 1  # what an export that knows no upper bound gives as one, or more


def build(source: str, target: schema.Target, report: schema.Report, judged: schema.Judged) -> dict[str, Any]:
    """The header of a new kernel file. ``source`` is ``"samples/rms_norm.py::RMSNorm"``."""
    candidate = judged.candidate
    header: dict[str, Any] = {
        "source": source,
        "class": target.class_name,
        "generator": candidate.generator,
        "note": candidate.note[:_MOST] or None,
        "variant": candidate.variant[:_MOST] or None,
        "pinned": candidate.pinned or None,
        "precision": candidate.precision if candidate.precision != "strict" else None,
        "fingerprint": "",  # here and not further down, where a reader looks for what was found out
        "body": "",
        "code": "",
    }
    if report.specimen is not None:
        header["envelope"] = envelope(report.specimen, candidate.pinned)
    return header | findings(target.fingerprint, report, judged, judged.measurement)


def findings(
    fingerprint: str, report: schema.Report, judged: schema.Judged, measurement: schema.Measurement | None
) -> dict[str, Any]:
    """The part of the header that a validation replaces."""
    lines = claims.lines(judged.verdict, measurement, report.device, __version__, now())
    return {"fingerprint": fingerprint} | lines


def renewed(header: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A header with new findings in place of the old ones; as it was where only the moment is another."""
    kept = {key: value for key, value in header.items() if key not in claims.KEYS}
    if _timeless(kept | found) == _timeless(header):
        return header
    return kept | found


def _timeless(header: dict[str, Any]) -> Any:
    """A header without the moment of its validation, as it is read back: without what TOML has no word for."""
    validated = header.get("validated")
    if isinstance(validated, dict):
        header = header | {"validated": {key: value for key, value in validated.items() if key != "at"}}
    return _without_none(header)


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_none(inner) for key, inner in value.items() if inner is not None}


def envelope(specimen: schema.Specimen, pinned: bool = False) -> dict[str, Any]:
    """The shapes, dtypes and sizes in which the kernel was validated, readable: ``x: float32[x_0, 4096]``.

    ``pinned``: at the example's sizes only.
    """
    if pinned:
        inputs = [dataclasses.replace(spec, dynamic=[]) for spec in specimen.inputs]
        specimen = dataclasses.replace(specimen, inputs=inputs, dynamic={})
    example: dict[str, int] = {}
    for spec in specimen.inputs:
        example |= {symbol: size for size, symbol in zip(spec.shape, spec.dynamic, strict=False) if symbol}
    sizes = []
    for symbol, (least, greatest) in specimen.dynamic.items():
        upwards = f"{least} to {greatest}" if greatest < _UNBOUNDED else f"{least} or more"
        sizes.append(f"{symbol}: {upwards}" + (f", {example[symbol]} in the example" if symbol in example else ""))
    return {
        "inputs": _fitted([f"{s.name}: {tensor_text(s)}" if s.name else tensor_text(s) for s in specimen.inputs], 3),
        "sizes": _fitted(sizes, 2) or None,
        "inputs-from": specimen.inputs_from,
        "init": specimen.init_args[:_MOST] or None,
        "training": specimen.training or None,
    }


def tensor_text(spec: schema.TensorSpec) -> str:
    """``float32[x_0, 4096]``: a dimension that may vary is shown by its symbol."""
    symbols = [*spec.dynamic, *[None] * len(spec.shape)]
    return f"{spec.dtype}[{', '.join(symbol or str(size) for size, symbol in zip(spec.shape, symbols, strict=False))}]"


def _fitted(items: list[str], lines: int) -> list[str]:
    """As many items as that many lines of the header hold, and how many there are beside these."""
    room = lines * _LINE
    for count in range(len(items), 0, -1):
        rest = [f"and {len(items) - count} more"] if count < len(items) else []
        if count == 1 or sum(len(item) + 4 for item in (*items[:count], *rest)) <= room:
            return [item[:room] for item in items[:count]] + rest
    return []


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

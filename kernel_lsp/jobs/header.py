"""From a report to the header of a kernel file."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from kernel_lsp import __version__, schema

_UNBOUNDED = 2**31 - 1  # what an export that knows no upper bound gives as one, or more


def build(source: str, target: schema.Target, report: schema.Report, judged: schema.Judged) -> dict[str, Any]:
    """The header of a new kernel file. ``source`` is ``"samples/rms_norm.py::RMSNorm"``."""
    candidate = judged.candidate
    header: dict[str, Any] = {
        "source": source,
        "class": target.class_name,
        "generator": candidate.generator,
        "note": candidate.note or None,
        "variant": candidate.variant or None,
        "pinned": candidate.pinned or None,
        "version": __version__,
        "written": now(),
    }
    if report.specimen is not None:
        header["envelope"] = envelope(report.specimen, candidate.pinned)
    return header | findings(target.fingerprint, report, judged)


def findings(fingerprint: str, report: schema.Report, judged: schema.Judged) -> dict[str, Any]:
    """The part of the header that a validation replaces."""
    return {
        "fingerprint": fingerprint,
        "verdict": compact(judged.verdict),
        "device": compact(report.device) if report.device else None,
        "measurement": compact(judged.measurement) if judged.measurement else None,
    }


def envelope(specimen: schema.Specimen, pinned: bool = False) -> dict[str, Any]:
    """The shapes, dtypes and sizes in which the kernel was validated, readable: ``x: float32[s0, 4096]``.

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
        "inputs": [f"{spec.name}: {tensor_text(spec)}" if spec.name else tensor_text(spec) for spec in specimen.inputs],
        "sizes": sizes or None,
        "inputs-from": specimen.inputs_from,
        "init": specimen.init_args or None,
        "training": specimen.training or None,
    }


def tensor_text(spec: schema.TensorSpec) -> str:
    """``float32[s0, 4096]``: a dimension that may vary is shown by its symbol."""
    symbols = [*spec.dynamic, *[None] * len(spec.shape)]
    return f"{spec.dtype}[{', '.join(symbol or str(size) for size, symbol in zip(spec.shape, symbols, strict=False))}]"


def compact(record: Any) -> Any:
    """A record as plain data, without the fields that have their default: what is left gives the same record back."""
    if isinstance(record, list):
        return [compact(item) for item in record]
    if isinstance(record, dict):
        return {key: compact(item) for key, item in record.items()}
    if not dataclasses.is_dataclass(record):
        return record
    table = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if value != default:
            table[field.name] = compact(value)
    return table


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

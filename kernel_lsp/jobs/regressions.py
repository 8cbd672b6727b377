"""Whether a kernel lost speed: it is timed in turn with the fastest one that its class had before.

Two numbers of two runs tell nothing, since a GPU is not the same from one run to the next. What the store has of the
time before decides only whether it is worth measuring both again.
"""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

from kernel_lsp import kernel_file, packed_weights, schema, speedup
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.jobs import device_requests
from kernel_lsp.jobs.run import LEAST_SECONDS, Run
from kernel_lsp.jobs.stored_verdicts import store_of, warn
from kernel_lsp.store import changes, fastest_before
from kernel_lsp.store.fastest_before import Rival
from kernel_lsp.store.validations import Key, Validation, key_for
from kernel_lsp.store.verdicts import inputs_text

NO_STORE = "no store keeps the kernels from before"


async def compare(run: Run, validated: schema.Validated, known: Validation | None) -> None:
    """Put the comparison of a kernel that was just timed with the one before it into its measurement, where there is one.

    Without times, as under the interpreter, there is nothing to compare. A comparison that was called for and not made
    says why.

    Args:
        known: this machine's validation of exactly this kernel before; None for a new one, or other versions.
    """
    measurement, settings = validated.measurement, run.settings
    took = time_of(measurement)
    if measurement is None or took is None or validated.verdict.status not in schema.CORRECT or run.job.training:
        return
    body = kernel_file.body_hash(validated.candidate.source)
    key = key_for(run.first_device, run.job.target.fingerprint, body, settings.bounds, validated.candidate.precision)
    if key is None:
        return
    if measurement.beside:
        measurement.comparison = schema.SpeedComparison(missing=f"timed beside other work: {measurement.beside}")
        return
    store = store_of(settings)
    if store is None:
        measurement.comparison = schema.SpeedComparison(missing=NO_STORE)
        return
    try:
        keeps = packed_weights.keeps(validated.candidate.source)
        rival = await asyncio.to_thread(_rival, key, measurement, store, keeps)
    except StoreUnusable as error:
        warn(run, error)
        measurement.comparison = schema.SpeedComparison(missing=error.neutral())
        return
    if rival is not None and is_called_for(took, rival.kernel, known, settings.regression_threshold):
        measurement.comparison = await _measured(run, validated.candidate.source, rival, key)
        run.tell_verdict()


def is_called_for(took: float, before: float, known: Validation | None, percent: float) -> bool:
    """Whether to measure a kernel beside the one before it.

    Where the kernel is new, or was found to have regressed, and where by the times on record, in microseconds, the one
    before is faster by more than ``percent``.
    """
    if known is None or time_of(known.measurement) is None:
        return True
    found = known.measurement.comparison if known.measurement is not None else None
    return took > before * (1 + percent / 100) or speedup.is_regression(found, percent)


def time_of(measurement: schema.Measurement | None) -> float | None:
    """The kernel's median at the example's shapes, in microseconds; None where it was not timed."""
    shape = measurement.shapes[0] if measurement is not None and measurement.shapes else None
    return shape.kernel.median if shape is not None and shape.kernel is not None else None


def _rival(key: Key, measurement: schema.Measurement, store: Path, keeps: bool) -> Rival | None:
    inputs = inputs_text(measurement.shapes[0])
    about = key.fingerprint, key.device, key.bounds, inputs
    return fastest_before.fastest(
        *about, other_than=[key.body], path=store, precision=key.precision, keeps_packed_weights=keeps
    )


async def _measured(run: Run, source: str, rival: Rival, key: Key) -> schema.SpeedComparison:
    about = schema.SpeedComparison(
        body=rival.body,
        reached_at=rival.reached_at,
        changed=changes.said(changes.changes(dataclasses.asdict(rival), dataclasses.asdict(key))),
    )
    if run.remaining() < 2 * LEAST_SECONDS:
        return dataclasses.replace(about, missing="the time was over before the kernel before it could be timed, too")
    run.progress("measuring", f"Timing it beside the kernel of {rival.reached_at[:10]}", 95)
    async with run.timing():
        found = await device_requests.compare(run, [source, rival.source], key.precision)
    if found.beside:
        found.missing = found.missing or f"timed beside other work: {found.beside}"
    return dataclasses.replace(found, body=about.body, reached_at=about.reached_at, changed=about.changed)

"""torch.compile's times for the chosen kernel: measured once, in a process without a candidate, and kept."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from kernel_lsp import errors, schema, speedup
from kernel_lsp.jobs import device_requests
from kernel_lsp.jobs.run import LEAST_SECONDS, Run
from kernel_lsp.jobs.stored_verdicts import store_of
from kernel_lsp.store.baselines import Kept, Key, Store, key_of


async def add(run: Run) -> None:
    """Put the times of torch.compile, in the modes that the settings name, into the chosen candidate's measurement.

    A kept time is used where eager, timed beside the kernel, took what it took then; else all are measured anew.
    """
    report = run.report
    if report.chosen is None:
        return
    validated = report.candidates[report.chosen]
    measurement = validated.measurement
    if measurement is None or not measurement.shapes or measurement.shapes[0].eager is None:
        return
    shape, modes = measurement.shapes[0], list(run.settings.baselines)
    measurement.compiled_missing = "" if modes else "not asked for"
    key = key_of(report)
    store = _store(store_of(run.settings))
    found = store.find(key) if key is not None else {}
    kept = {mode: found[mode] for mode in modes if _usable(found, mode, shape)}
    for mode in modes:
        if mode in kept:
            _set(shape, mode, kept[mode].timing)
            shape.kept[mode] = kept[mode].said()
    missing = [mode for mode in modes if mode not in kept]
    if missing:
        measurement.compiled_missing = await _measure(run, shape, missing, key)
    where = "at the example's shapes" if speedup.mixed(measurement) is not None else ""
    speedup.note_if_slower(validated.verdict, shape.kernel, "torch.compile", shape.compiled, where)
    run.tell_verdict()


@functools.cache
def _store(path: Path | None) -> Store:
    return Store(path)


def _usable(kept: dict[str, Kept], mode: str, shape: schema.ShapeMeasurement) -> bool:
    """Whether the mode's time is kept, and eager takes what it took beside it."""
    assert shape.eager is not None
    return (
        mode in kept
        and _eager_beside(mode) in kept
        and speedup.agrees(kept[_eager_beside(mode)].timing.median, shape.eager.median)
    )


def _eager_beside(mode: str) -> str:
    """Under which name eager's time beside a mode is kept."""
    return f"eager beside {mode}"


async def _measure(run: Run, shape: schema.ShapeMeasurement, modes: list[str], key: Key | None) -> str:
    """Have the modes timed, and keep what comes of it; why something is missing, or ""."""
    if run.remaining() < 2 * LEAST_SECONDS:
        return "torch.compile: the time was over"
    run.progress("measuring", "Timing torch.compile", 95)
    try:
        async with run.timing():
            answer = await device_requests.baseline(run, modes)
    except errors.UserError as error:
        return f"torch.compile: {error.neutral()}"
    for mode, found in answer["modes"].items():
        _fill(shape, mode, found, key, _store(store_of(run.settings)))
    return "; ".join(answer["missing"].values())


def _fill(shape: schema.ShapeMeasurement, mode: str, found: dict[str, Any], key: Key | None, store: Store) -> None:
    compiled = schema.from_json(schema.Timing, found["compiled"])
    then = schema.from_json(schema.Timing, found["eager"])
    assert shape.eager is not None
    _set(shape, mode, compiled)
    if key is not None and not found.get("beside"):
        store.keep(key, mode, compiled)
        store.keep(key, _eager_beside(mode), then)
    if found.get("beside"):
        shape.kept[mode] = f"measured beside other work: {found['beside']}"
    elif not speedup.agrees(then.median, shape.eager.median):
        shape.kept[mode] = f"measured in another process, where eager took {then.median:.1f} µs"


def _set(shape: schema.ShapeMeasurement, mode: str, timing: schema.Timing) -> None:
    if mode == "default":
        shape.compiled = timing
    else:
        shape.compiled_modes[mode] = timing

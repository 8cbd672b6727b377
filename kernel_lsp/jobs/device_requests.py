"""What the worker is asked that uses the device: to validate a candidate, to tune several, and for the times of other ways to run the class.

The report and the listener learn each thing as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_lsp import class_schema, errors, schema
from kernel_lsp.jobs.run import Run


async def validate(
    run: Run,
    candidate: schema.Candidate,
    measure: str,
    percentage: Callable[[float], float],
    known: schema.Validated | None = None,
) -> schema.Validated | None:
    """Have the worker validate a candidate; the report and the listener learn each thing as soon as it is known.

    Args:
        measure: "none", or "eager" for times of eager and the kernel.
        percentage: from the share of this validating that is done (0 to 1) to the job's percentage.
        known: the candidate's entry in the report, if it was validated before; it is brought up to date.

    Returns:
        The entry in ``report.candidates``; None if the time was over before there was a verdict.

    Raises:
        UserError: the class itself could not be run, or the worker died before a verdict.
    """
    validated: schema.Validated | None = None
    run.validating = "validating"
    run.job.number = (run.report.candidates.index(known) if known else len(run.report.candidates)) + 1

    def on_verdict(data: Any) -> schema.Validated:
        verdict = schema.from_json(schema.Verdict, data)
        if validated is None and known is not None:
            entry = known
            entry.verdict = verdict
        elif validated is None:
            entry = schema.Validated(candidate, verdict)
            run.report.candidates.append(entry)
        else:
            entry = validated
            entry.verdict = verdict
        return entry

    def on_event(name: str, data: Any) -> None:
        nonlocal validated
        if name == "progress":
            run.validating = data.get("stage") or run.validating
            run.progress(run.validating, data.get("message", ""), percentage(float(data.get("fraction") or 0.0)))
        elif name == "verdict":
            validated = on_verdict(data)
            run.tell("verdict")
        elif name == "measurement" and validated is not None:
            validated.measurement = schema.from_json(schema.Measurement, data)
            run.tell("measurement")

    params: dict[str, Any] = {"source": candidate.source, "measure": measure, "pinned": candidate.pinned}
    params |= {"recorded": run.recorded_shapes, "precision": candidate.precision}
    try:
        answer = await run.ask_on_device("validate", params, "validating a candidate", on_event)
    except errors.UserError as error:
        validated = validated or known  # what was found correct before stays so; only its time is missing
        if validated is None and isinstance(error, errors.WorkerTimedOut) and run.report.candidates:
            return None
        if validated is None:
            raise
        _leave_unfinished(validated.verdict, error)
        # What was already found out stays true; only what comes after it is missing.
        validated.measurement = validated.measurement or schema.Measurement(missing=error.neutral())
        validated.measurement.compiled_missing = validated.measurement.compiled_missing or error.neutral()
        return validated
    finally:
        run.validating = ""
    validated = on_verdict(answer["verdict"])
    _note(run, answer)
    if answer.get("measurement") is not None:
        validated.measurement = schema.from_json(schema.Measurement, answer["measurement"])
    if validated.measurement and validated.measurement.device:
        _take_device(run, validated.measurement.device)
    run.tell("verdict")
    return validated


async def tune(run: Run, candidates: list[schema.Candidate], percentage: Callable[[float], float]) -> None:
    """Have the first candidate validated, all timed, and the fastest validated; the report learns each as it is known.

    Raises:
        UserError: the class itself could not be run, or the worker died before a verdict.
    """
    entries: dict[int, schema.Validated] = {}
    run.validating = "validating"
    run.job.number = len(run.report.candidates) + 1

    def on_verdict(index: int, data: Any) -> None:
        verdict = schema.from_json(schema.Verdict, data)
        if index in entries:
            entries[index].verdict = verdict
        else:
            entries[index] = schema.Validated(candidates[index], verdict)
            run.report.candidates.append(entries[index])

    def on_event(name: str, data: Any) -> None:
        if name == "progress":
            run.validating = data.get("stage") or "validating"
            run.progress(run.validating, data.get("message", ""), percentage(float(data.get("fraction") or 0.0)))
        elif name == "verdict":
            on_verdict(data["index"], data["verdict"])
            run.tell("verdict")

    params: dict[str, Any] = {"sources": [candidate.source for candidate in candidates]}
    params |= {"recorded": run.recorded_shapes, "precision": candidates[0].precision}
    try:
        answer = await run.ask_on_device("tune", params, "validating a kernel", on_event)
    except errors.UserError as error:
        if not entries:
            raise
        for entry in entries.values():
            _leave_unfinished(entry.verdict, error)
        # What was already found out stays true; only what comes after it is missing.
        entries[0].measurement = schema.Measurement(missing=error.neutral(), compiled_missing=error.neutral())
        return
    finally:
        run.validating = ""
    for index, data in answer["verdicts"].items():
        on_verdict(int(index), data)
    run.report.tried = [schema.from_json(schema.Tried, data) for data in answer["tried"]]
    for one, candidate in zip(run.report.tried, candidates, strict=False):
        one.variant = candidate.variant
    _note(run, answer)
    if answer["measurement"] is not None:
        entries[answer["fastest"]].measurement = schema.from_json(schema.Measurement, answer["measurement"])
    for entry in entries.values():
        if entry.measurement and entry.measurement.device:
            _take_device(run, entry.measurement.device)
            run.tell("measurement")
    run.tell("verdict")


async def baseline(run: Run, modes: list[str]) -> dict[str, Any]:
    """The times of eager and torch.compile in ``modes``, taken in a process without a candidate.

    Raises:
        UserError: what the worker raises, where no mode was timed before.
    """
    known: dict[str, Any] = {}

    def on_event(name: str, data: Any) -> None:
        if name == "progress":
            run.progress("measuring", data.get("message", ""), 96)
        elif name == "baseline":
            known[data["mode"]] = data

    try:
        answer = await run.ask_on_device("baseline", {"modes": modes}, "timing torch.compile", on_event)
    except errors.UserError as error:
        if not known:
            raise
        why = f"torch.compile: {error.neutral()}"
        return {"modes": known, "missing": {mode: why for mode in modes if mode not in known}}
    _note(run, answer)
    return answer  # type: ignore[no-any-return]


async def compare(run: Run, sources: list[str], precision: str) -> schema.SpeedComparison:
    """The first of two kernels, the one of now, timed in turn with the other, which it had before. ``precision``: of both."""

    def on_event(name: str, data: Any) -> None:
        if name == "progress":
            run.progress("measuring", data.get("message", ""), 96)

    params = {"sources": sources, "precision": precision}
    stage = "timing the kernel beside the one before"
    try:
        answer = await run.ask_on_device("compare", params, stage, on_event)
    except errors.UserError as error:
        return schema.SpeedComparison(missing=error.neutral())
    _note(run, answer)
    return schema.from_json(schema.SpeedComparison, answer["comparison"])  # type: ignore[no-any-return]


def _take_device(run: Run, measured: schema.Device) -> None:
    """The device as it was measured; its driver only the worker's first answer knows."""
    if not measured.driver and run.report.device is not None:
        measured.driver = run.report.device.driver
    run.report.device = measured


def _note(run: Run, answer: dict[str, Any]) -> None:
    """Keep the greatest use of memory that an answer tells of, what took how long, and what was looked at."""
    run.looked_at = schema.from_json(class_schema.Specimen, answer.get("specimen")) or run.looked_at
    for part, seconds in (answer.get("spent") or {}).items():
        run.report.spent[part] = round(run.report.spent.get(part, 0.0) + seconds, 3)
    for where, count in (answer.get("memory") or {}).items():
        run.report.memory[where] = max(run.report.memory.get(where, 0), count)


def _leave_unfinished(verdict: schema.Verdict, error: errors.UserError) -> None:
    """Count a candidate as correct only if the checks that were put off were made before the error."""
    if verdict.status in schema.CORRECT and any(limit.startswith(schema.STILL) for limit in verdict.limits):
        verdict.status = "timeout" if isinstance(error, errors.WorkerTimedOut) else "crashed"
        verdict.reason = f"its validation did not come to an end: {error.neutral()}"

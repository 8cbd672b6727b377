"""Classes with several examples: a validation with each, and kernels for those that the ones before leave to eager.

Each example is worked on by a run of its own, with the report and the time budget of one; what is found goes into the verdict of the
class's kernel file. Times over recorded shapes, of torch.compile and beside earlier kernels are those of the first example's run.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kernel_lsp import class_schema, errors, schema, speedup
from kernel_lsp.jobs import device_requests, header, several_envelopes
from kernel_lsp.jobs.formatting import format_source
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.jobs.run import Run

Percentage = Callable[[float], float]


async def validate(
    run: Run, candidate: schema.Candidate, measure: str, percentage: Percentage
) -> schema.Validated | None:
    """As ``device_requests.validate``, with every example of the class.

    Raises:
        UserError: as there; an example after the first cannot be run.
    """
    entry = await device_requests.validate(run, candidate, measure, percentage)
    count = run.looked_at.examples if run.looked_at is not None else 1
    if entry is None or entry.verdict.status not in schema.CORRECT:
        return entry
    if count > 1:
        _combine(run, entry, [await _with_example(run, candidate, number, measure) for number in range(1, count)])
    if missed := unserved(entry):
        entry.verdict.limits.append(
            f"{missed} of its {several_envelopes.envelopes(candidate.source)} envelopes, which no example is in"
        )
    return entry


def unserved(entry: schema.Validated) -> int:
    """How many envelopes of a kernel no example was in that it was validated with: examples that are gone, or that no longer fit.

    0 where that is not known.
    """
    verdict = entry.verdict
    envelopes_used = [one.envelope for one in verdict.examples if one.status != "eager"] or [verdict.envelope]
    return (
        len({*range(1, several_envelopes.envelopes(entry.candidate.source) + 1)}.difference(envelopes_used))
        if all(envelopes_used)
        else 0
    )


@dataclass
class _Other:
    """What was found with an example after the first; the specimen where it was looked at."""

    specimen: class_schema.Specimen | None
    entry: schema.Validated

    @property
    def eager(self) -> bool:
        """Whether no envelope holds for it."""
        return self.entry.verdict.reason == schema.NO_LAUNCH


async def _with_example(run: Run, candidate: schema.Candidate, number: int, measure: str) -> _Other:
    sub = _of_example(run, number)
    try:
        entry = await device_requests.validate(sub, candidate, measure, lambda fraction: 95)
    except errors.WorkerTimedOut as error:
        entry = schema.Validated(candidate, schema.Verdict("timeout", str(error)))
    finally:
        _take(run, sub)
    assert entry is not None  # with no candidate before it, validate raises instead
    return _Other(sub.looked_at, entry)


async def add(run: Run, ask: Callable[[Run], Awaitable[object]]) -> None:
    """Where there are several examples, have the chosen kernel validated with each, and others written and joined to it.

    A kernel is written for an example that no envelope of those before holds for. What comes of it, validated anew with all, is the
    report's choice. An example without a correct kernel stays with eager, and a warning says why. A kernel that is wrong with another
    example is not chosen; the next in time is.

    Args:
        ask: asks the generators for candidates for a run, which it has validated.

    Raises:
        UserError: an example after the first cannot be run.
    """
    report, specimen = run.report, run.report.specimen or run.looked_at
    if specimen is None or specimen.examples < 2:
        return
    while report.chosen is not None and not report.candidates[report.chosen].verdict.examples:
        await _with_all(run, report.candidates[report.chosen], range(1, specimen.examples), ask)
        report.chosen = fastest(report.candidates)


async def _with_all(run: Run, entry: schema.Validated, further: range, ask: Callable[[Run], Awaitable[object]]) -> None:
    """Have the kernel of ``entry`` validated with the ``further`` examples, and joined with others where it is no kernel for one."""
    candidate, others, why = entry.candidate, [], {}
    for number in further:
        run.progress("validating", f"Validating example {number + 1} of {further.stop}", 95)
        async with run.timing():
            others.append(await _with_example(run, candidate, number, "eager"))
        if others[-1].eager:
            try:
                candidate = await _with_one_more(run, candidate, number, ask)
            except several_envelopes.NotJoined as error:
                why[number] = str(error)
        elif others[-1].entry.verdict.status not in schema.CORRECT:
            break
    run.report.warnings += [f"Example {number + 1} runs eagerly: {reason}" for number, reason in why.items()]
    if candidate is entry.candidate:
        _combine(run, entry, others)
        return
    async with run.timing():
        made = await validate(run, candidate, "eager", lambda fraction: 96)
        if made is not None and made.verdict.status in schema.CORRECT:
            return
        reason = made.verdict.reason if made is not None else "the time was over"
        how = "not validated" if made is None or made.verdict.status == "timeout" else "not correct"
        run.report.warnings.append(f"The kernels of several examples are {how} in one file: {reason}")
        _combine(run, entry, [await _with_example(run, entry.candidate, number, "eager") for number in further])


async def _with_one_more(
    run: Run, candidate: schema.Candidate, number: int, ask: Callable[[Run], Awaitable[object]]
) -> schema.Candidate:
    """``candidate`` with kernels for one more example.

    Raises:
        NotJoined: there are none, or they cannot share a file.
    """
    sub = _of_example(run, number)
    try:
        await ask(sub)
    finally:
        _take(run, sub)
    if sub.report.chosen is None:
        reasons = [one.verdict.reason for one in sub.report.candidates]
        problems = [source.problem for source in sub.report.sources if source.problem]
        raise several_envelopes.NotJoined(next(iter(reasons + problems), "no generator has a candidate"))
    return await _joined(run, candidate, sub.report.candidates[sub.report.chosen].candidate)


async def _joined(run: Run, first: schema.Candidate, second: schema.Candidate) -> schema.Candidate:
    """Both kernels as one candidate.

    Raises:
        NotJoined: they cannot share a file.
    """
    if first.pinned or second.pinned:
        raise several_envelopes.NotJoined("it holds at the example's sizes only")
    text = several_envelopes.joined(first.source, second.source, run.job.target.class_name)
    source = await format_source(run.completed(text), run.kernel)
    notes = dict.fromkeys(note for note in (first.note, second.note) if note)
    by = dict.fromkeys([first.generator, second.generator])
    loosest = next((one.precision for one in (first, second) if one.precision != "strict"), "strict")
    return dataclasses.replace(
        first, source=source, generator=", ".join(by), note="; ".join(notes), precision=loosest, parent=None, answer=""
    )


def _of_example(run: Run, number: int) -> Run:
    """A run that looks at another example, with a report and a time budget of its own."""
    report = schema.Report(run.report.target, device=run.report.device)
    return dataclasses.replace(
        run, report=report, example=number, recorded_shapes=None, looked_at=None, began=time.monotonic()
    )


def _take(run: Run, sub: Run) -> None:
    """What counts for the whole job: how far it is, what it took, and what went wrong beside."""
    run.began += time.monotonic() - sub.began
    run.shown = sub.shown
    run.report.warnings += [text for text in sub.report.warnings if text not in run.report.warnings]
    for part, seconds in sub.report.spent.items():
        run.report.spent[part] = round(run.report.spent.get(part, 0.0) + seconds, 3)
    for where, count in sub.report.memory.items():
        run.report.memory[where] = max(run.report.memory.get(where, 0), count)


def _found(specimen: class_schema.Specimen | None, entry: schema.Validated, eager: bool = False) -> schema.OfExample:
    verdict, measurement = entry.verdict, entry.measurement
    error, of_eager = speedup.errors_on_the_example(verdict)
    shape = measurement.shapes[0] if measurement is not None and measurement.shapes else None
    return schema.OfExample(
        inputs=header.inputs_words(specimen) if specimen is not None else "",
        status="eager" if eager else verdict.status,
        reason="" if eager else verdict.reason,
        error=None if eager else error,
        eager_error=None if eager else of_eager,
        eager=shape.eager if shape is not None else None,
        kernel=shape.kernel if shape is not None else None,
        envelope=0 if eager else verdict.envelope,
    )


def _sides(verdicts: list[schema.Verdict]) -> list[schema.Side]:
    """The sides of comparisons in all examples: shown where one example shows it. What another envelope's kernel does there says nothing."""
    found: dict[tuple[int, str, int], schema.Side] = {}
    for verdict in verdicts:
        for side in verdict.sides:
            known = found.setdefault((verdict.envelope, side.text, side.number), dataclasses.replace(side))
            known.shown = known.shown or side.shown
    return list(found.values())


def _combine(run: Run, entry: schema.Validated, others: list[_Other]) -> None:
    """Make the verdict with the first example one of all: correct where none is wrong."""
    verdict, report = entry.verdict, run.report
    sides = _sides([verdict, *(one.entry.verdict for one in others if not one.eager)])
    first = run.looked_at or report.specimen
    examples = [_found(first, entry), *(_found(one.specimen, one.entry, one.eager) for one in others)]
    for number, (found, other) in enumerate(zip(examples[1:], others, strict=True), 2):
        theirs, about = other.entry.verdict, f"example {number}"
        if other.eager:
            verdict.limits.append(f"{about}, which runs eagerly ({found.inputs})")
            continue
        verdict.checks += [dataclasses.replace(check, name=f"{about}: {check.name}") for check in theirs.checks]
        verdict.limits += [limit for limit in theirs.limits if limit not in verdict.limits]
        verdict.skipped += [f"{about}: {name}" for name in theirs.skipped]
        named = {kernel.name for kernel in verdict.kernels}
        verdict.kernels += [kernel for kernel in theirs.kernels if kernel.name not in named]
        if theirs.error is not None and (verdict.error is None or theirs.error > verdict.error):
            verdict.error, verdict.eager_error = theirs.error, theirs.eager_error
            verdict.error_check = f"{about}: {theirs.error_check}" if theirs.error_check else about
        if theirs.example_error is not None and theirs.example_error > (verdict.example_error or 0.0):
            verdict.example_error, verdict.example_eager_error = theirs.example_error, theirs.example_eager_error
        if verdict.within_1e2 is not None and theirs.within_1e2 is not None:
            verdict.within_1e2 = verdict.within_1e2 and theirs.within_1e2
        worse = verdict.status in schema.CORRECT and theirs.status not in schema.CORRECT
        if worse or (verdict.status == "ok" and theirs.status == "slower"):
            verdict.status, verdict.line = theirs.status, theirs.line
            verdict.reason = f"{about} ({found.inputs}): {theirs.reason}"
    gone = {side.limit for side in sides} - {side.limit for side in sides if not side.shown}
    verdict.limits = [limit for limit in verdict.limits if limit not in gone]
    verdict.sides, verdict.examples = sides, examples
    apart: dict[int, class_schema.Specimen] = {}
    for found, specimen in zip(examples, [first, *(one.specimen for one in others)], strict=True):
        if found.envelope and specimen is not None:
            apart.setdefault(found.envelope, specimen)
    report.further = [one for one in apart.values() if one is not first]
    run.tell_verdict()

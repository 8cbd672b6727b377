"""The pipeline of a generation: fingerprint → candidates → format → validate → what was faster before → choose → write."""

from __future__ import annotations

import asyncio
import re

from kernel_lsp import errors, generators, schema
from kernel_lsp.generators import recall
from kernel_lsp.jobs import baselines, earlier_kernel, job_store, several_examples, sources, stored_verdicts, writing
from kernel_lsp.jobs.formatting import ruff_command
from kernel_lsp.jobs.generator_run import TIME_OVER, GeneratorRun
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.jobs.run import Run


async def generate(run: Run) -> None:
    """Fill ``run.report`` and write the kernel file.

    Raises:
        UserError: the class cannot be run, or changed meanwhile, the file may not be written, no generator has a candidate, …
        NothingToLower: all that the rules have is kernels beside the operators that do the work, which stay with torch.
    """
    job, report, settings = run.job, run.report, run.settings
    run.take_fingerprint()
    await run.require_inputs()
    # What is bound to fail fails now, and not after a minute of work.
    ruff_command()
    names = await asyncio.to_thread(generators.chosen, settings)  # one looks into the store
    for name in names:
        generators.find(name)
    place = writing.place_for(run)

    await run.start_worker()
    await job_store.keep_devices(settings, run.worker.hello)
    failures = await _ask_generators(run, names)
    if not settings.generators or recall.NAME in settings.generators:
        await earlier_kernel.validate_faster(run)
    report.chosen = fastest(report.candidates)
    _check_unchanged(run)
    if not report.candidates and failures:
        raise failures[0]
    if not report.candidates:
        told = [f"{source.generator}: {source.problem or 'nothing'}" for source in report.sources]
        advice = " Raise kernelLsp.seconds." if any(TIME_OVER in one for one in told) else ""
        raise errors.NoCandidates(class_name=job.target.class_name, detail=f"{'; '.join(told)}.{advice}")
    if report.chosen is None and (nothing := _nothing_saved(report)) is not None:
        report.candidates.clear()  # their verdict is "cheating", which tells the user nothing about the module
        raise nothing
    await several_examples.add(run, lambda other: _ask_generators(other, names))
    if run.on_gpu:
        await baselines.add(run)
    sources.count(report)
    report.why = _why(report)
    if report.chosen is not None:
        chosen = report.candidates[report.chosen]
        chosen.candidate.precision = chosen.verdict.held_to  # strict where the module has nothing to round
        await stored_verdicts.keep(run, chosen)
        if job.write:
            writing.write(run, place, chosen)


async def _ask_generators(run: Run, names: list[str]) -> list[errors.UserError]:
    """Validate what the generators propose, one after the other; the errors of those that had nothing, or stopped."""
    failures: list[errors.UserError] = []
    seen: dict[str, int] = {}
    for name in names:
        _check_unchanged(run)
        generator_run = GeneratorRun(run, name, seen)
        try:
            await generator_run.ask()
        except errors.UserError as error:
            generator_run.source.problem = str(error)
            failures.append(error)
            correct = any(entry.verdict.status in schema.CORRECT for entry in run.report.candidates)
            if isinstance(error, errors.WorkerDied) and not correct:
                raise
    return failures


def _check_unchanged(run: Run) -> None:
    """What was found wrong was written for the class as it was, and compared with the class as it is.

    Raises:
        ClassChanged: no candidate is correct, and the class is not the one that the generation began with.
    """
    if run.report.candidates and fastest(run.report.candidates) is None and not run.is_unchanged():
        raise errors.ClassChanged(path=str(run.job.path), class_name=run.job.target.class_name)


def _nothing_saved(report: schema.Report) -> errors.NothingToLower | None:
    """The error where every candidate is by the rules, and has nothing but kernels beside what torch does for the module anyway."""
    kept = ""
    for entry in report.candidates:
        found = re.search(rf"\(([\w.]+).*\): {re.escape(schema.SAVES_NOTHING)}", entry.verdict.reason)
        if entry.candidate.generator != "synthesizer" or found is None:
            return None
        kept = kept or found[1]
    detail = "torch does the work, and kernels for the rest would save none of it"
    return errors.NothingToLower(class_name=report.target.class_name, op=kept, detail=detail)


def _why(report: schema.Report) -> str:
    """One or two sentences on the choice."""
    told = f" ({'; '.join(sources.words(report))})" if report.of_models else ""
    if report.chosen is None:
        return f"None of {len(report.candidates)} candidates is correct: {report.candidates[0].verdict.reason}{told}"
    correct = sum(entry.verdict.status in schema.CORRECT for entry in report.candidates)
    chosen = report.candidates[report.chosen]
    on_gpu = report.device is not None and report.device.kind == "cuda"
    timed = chosen.measurement is not None and any(shape.kernel for shape in chosen.measurement.shapes)
    words = f"The fastest of {correct} correct candidates." if timed and correct > 1 else "The first correct candidate."
    timed_variants = sum(one.timing is not None for one in report.tried)
    if timed_variants > 1:
        words = f"The fastest of {timed_variants} schedules."
    not_validated = sum(source.not_validated for source in report.sources)
    if not_validated:
        words += f" {not_validated} more were not validated: " + (
            "the time was over." if on_gpu else "no GPU to time them on."
        )
    return words + told

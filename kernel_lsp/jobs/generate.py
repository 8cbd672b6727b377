"""The pipeline of a generation: fingerprint → candidates → format → judge → choose → write."""

from __future__ import annotations

from kernel_lsp import errors, generators, kernel_file, schema
from kernel_lsp.jobs import header
from kernel_lsp.jobs.formatting import format_source, ruff_command
from kernel_lsp.jobs.run import LEAST_SECONDS, Run, fastest

_CANDIDATES_FROM, _CANDIDATES_TO = 25.0, 95.0  # the part of the progress bar that belongs to the candidates


async def generate(run: Run) -> None:
    """Fill ``run.report`` and write the kernel file.

    Raises:
        UserError: the class cannot be run, the file may not be written, no generator has a candidate, …
    """
    job, report, settings = run.job, run.report, run.settings
    overwrite = settings.overwrite if job.overwrite is None else job.overwrite
    kernel = job.kernel or kernel_file.kernel_path(job.path, job.target.class_name, settings.kernel_folder)
    source = kernel_file.source_name(job.path, job.target.class_name, kernel, settings.root)
    run.take_fingerprint()
    # What is bound to fail fails now, and not after a minute of work.
    ruff_command()
    for name in settings.generators:
        generators.find(name)
    if job.write:
        kernel_file.may_write(kernel, source, overwrite)

    await run.start_worker()
    unjudged, failures = await _judge_candidates(run)
    report.chosen = fastest(report.candidates)
    if not report.candidates and failures:
        raise failures[0]
    if not report.candidates:
        detail = f"Nothing came of {', '.join(settings.generators)}."
        raise errors.NoCandidates(class_name=job.target.class_name, detail=detail)
    if run.on_gpu:
        await _complete_measurement(run)
    report.why = _why(report, unjudged)

    if report.chosen is not None and job.write:
        run.progress("writing", f"Writing {kernel.name}", 97)
        chosen = report.candidates[report.chosen]
        text = kernel_file.assemble(header.build(source, job.target, report, chosen), chosen.candidate.source)
        kernel_file.write(kernel, text, source, overwrite)
        report.file = str(kernel)


async def _judge_candidates(run: Run) -> tuple[int, list[errors.UserError]]:
    """Judge what the generators propose; how many candidates were left out, and the errors of those that had none."""
    unjudged, failures = 0, []
    seen: set[str] = set()
    request = generators.Request(
        path=run.job.path,
        class_name=run.job.target.class_name,
        inputs=run.settings.inputs_for(run.job.path, run.job.target.class_name),
        device=run.settings.device,
        samples=run.settings.samples,
        ask_worker=run.ask_worker,
        progress=lambda message: run.progress("generating", message, 10),
    )
    for name in run.settings.generators:
        try:
            async for candidate in generators.find(name)(request):
                run.report.specimen = request.specimen
                run.mark("candidates")
                if not _worth_judging(run, candidate):
                    unjudged += 1
                elif await _format(run, candidate) and candidate.source not in seen:
                    seen.add(candidate.source)
                    await _judge_one(run, candidate)
        except errors.UserError as error:
            if len(run.settings.generators) == 1 or isinstance(error, errors.WorkerDied):
                raise
            failures.append(error)
        run.report.specimen = request.specimen or run.report.specimen
    return unjudged, failures


def _worth_judging(run: Run, candidate: schema.Candidate) -> bool:
    """Without a GPU nothing tells which of two correct kernels is faster, so the first correct one is the result."""
    judged = run.report.candidates
    if judged and run.remaining() < LEAST_SECONDS:
        return False
    if run.on_gpu or not judged:
        return True
    if any(entry.verdict.status in schema.CORRECT for entry in judged):
        return False
    # A variant computes the same as its sibling: wrong there is wrong here.
    wrong = [entry.candidate for entry in judged if entry.verdict.status == "wrong"]
    return not (candidate.variant and any(sibling.generator == candidate.generator for sibling in wrong))


async def _format(run: Run, candidate: schema.Candidate) -> bool:
    """Format the candidate in place; one that does not parse is rejected there and then."""
    try:
        candidate.source = await format_source(candidate.source)
    except errors.FormatterFailed as error:
        run.report.candidates.append(schema.Judged(candidate, schema.Verdict("rejected", reason=str(error))))
        return False
    return True


async def _judge_one(run: Run, candidate: schema.Candidate) -> None:
    number = len(run.report.candidates)

    def percentage(fraction: float) -> float:
        # How many will come is not known: each takes half of what is left of the bar; without a GPU there is but one.
        done = 1 - 0.5 ** (number + fraction) if run.on_gpu else fraction
        return _CANDIDATES_FROM + done * (_CANDIDATES_TO - _CANDIDATES_FROM)

    run.progress("validating", f"Judging candidate {number + 1}", percentage(0.0))
    # torch.compile's figure belongs to the module, so the first candidate takes it for all that follow.
    first = not any(entry.verdict.status in schema.CORRECT for entry in run.report.candidates)
    await run.judge(candidate, "full" if first else "eager", percentage)


async def _complete_measurement(run: Run) -> None:
    """Time the chosen candidate and torch.compile interleaved in one process, if another candidate had that honour."""
    report = run.report
    correct = [i for i, entry in enumerate(report.candidates) if entry.verdict.status in schema.CORRECT]
    if report.chosen is None or report.chosen == correct[0] or run.remaining() < 2 * LEAST_SECONDS:
        return
    first = report.candidates[correct[0]].measurement
    if first is None or not any(shape.compiled for shape in first.shapes):
        return  # torch.compile had no figure to give
    chosen = report.candidates.pop(report.chosen)
    run.progress("measuring", "Timing the fastest candidate against torch.compile", 95)
    if await run.judge(chosen.candidate, "full", lambda fraction: 95.0 + fraction) is None:
        report.candidates.append(chosen)
    report.chosen = fastest(report.candidates)


def _why(report: schema.Report, unjudged: int) -> str:
    """One sentence on the choice."""
    if report.chosen is None:
        return f"None of {len(report.candidates)} candidates is correct: {report.candidates[0].verdict.reason}"
    correct = sum(entry.verdict.status in schema.CORRECT for entry in report.candidates)
    chosen = report.candidates[report.chosen]
    timed = chosen.measurement is not None and any(shape.kernel for shape in chosen.measurement.shapes)
    words = f"The fastest of {correct} correct candidates." if timed and correct > 1 else "The first correct candidate."
    if unjudged:
        words += f" {unjudged} more were not judged: " + ("the time was over." if timed else "no GPU to time them on.")
    return words

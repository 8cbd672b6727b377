"""The pipeline of a return to a kernel that the class had before: take it from the store, validate it again, write it."""

from __future__ import annotations

import asyncio
import contextlib

from kernel_lsp import class_schema, errors, schema
from kernel_lsp.jobs import baselines, earlier_kernel, job_store, several_examples, stored_verdicts, writing
from kernel_lsp.jobs.run import Run
from kernel_lsp.store import fastest_before


async def restore(run: Run) -> None:
    """Fill ``run.report`` and write the kernel file, as a generation does, if the kernel is correct still.

    Raises:
        UserError: the store no longer has it, it is not correct, the file may not be written, the class cannot be run, …
    """
    job, report = run.job, run.report
    run.take_fingerprint()
    place = writing.place_for(run)
    store = job_store.store_of(run.settings)
    kept = await asyncio.to_thread(fastest_before.candidate, job.target.fingerprint, job.body, store)
    if kept is None:
        raise errors.FasterKernelMissing(class_name=job.target.class_name)
    await run.start_worker()
    await job_store.keep_devices(run.settings, run.worker.hello)
    run.progress("generating", "Exporting the graph", 10)
    with contextlib.suppress(errors.UserError):  # what matters of it, validating raises again
        found = await run.ask_worker("introspect", "exporting the graph")
        report.specimen = schema.from_json(class_schema.Specimen, found)
    candidate = earlier_kernel.as_kept(*kept, report.specimen)
    run.progress("validating", "Validating the faster kernel", 20)
    async with run.timing():
        validated = await several_examples.validate(run, candidate, "eager", lambda fraction: 20 + 75 * fraction)
    assert validated is not None  # with no candidate before it, validate raises instead
    verdict = validated.verdict
    report.chosen = 0 if verdict.status in schema.CORRECT else None
    if run.on_gpu:
        await baselines.add(run)
    await stored_verdicts.keep(run, validated)
    if report.chosen is None:
        reason = verdict.reason.rstrip(".")
        raise errors.FasterKernelNotCorrect(class_name=job.target.class_name, status=verdict.status, reason=reason)
    report.why = "The faster kernel from before."
    if job.write:
        writing.write(run, place, validated)

"""Validates an earlier kernel of the class again where it was faster than every candidate of this job.

Recall leaves out what the synthesizer would write anew, what a user has edited since, and classes without a graph. The
times on record decide only whether the earlier kernel is worth validating. Its new times decide whether it is chosen.
"""

from __future__ import annotations

import asyncio
import functools
import logging

from kernel_lsp import class_schema, kernel_file, packed_weights, schema
from kernel_lsp.errors import StoreUnusable, UserError
from kernel_lsp.generators import recall
from kernel_lsp.jobs import device_requests, job_store, stored_verdicts
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.jobs.regressions import time_of
from kernel_lsp.jobs.run import LEAST_SECONDS, Run
from kernel_lsp.store import fastest_before
from kernel_lsp.store.fastest_before import Rival
from kernel_lsp.store.validations import key_for
from kernel_lsp.store.verdicts import inputs_text

log = logging.getLogger("kernel_lsp.jobs")


async def validate_faster(run: Run) -> None:
    """Validate the fastest kernel of before again, where the times on record say that it was faster than all kernels of now.

    It has to be faster by more than ``regressionThreshold`` percent: a smaller loss is not worth a validation. An error
    is a warning, since a correct kernel is there.
    """
    report, body = run.report, kernel_file.body_hash
    now = fastest(report.candidates)
    if now is None or not run.on_gpu or run.job.training or run.remaining() < LEAST_SECONDS:
        return
    measurement = report.candidates[now].measurement
    took = time_of(measurement)
    precision = report.candidates[now].verdict.held_to
    key = key_for(run.first_device, run.job.target.fingerprint, "any", run.settings.bounds, precision)
    if measurement is None or took is None or key is None:
        return
    keeps = packed_weights.keeps(report.candidates[now].candidate.source)
    others = [body(entry.candidate.source) for entry in report.candidates]
    store, inputs = job_store.store_of(run.settings), inputs_text(measurement.shapes[0])
    try:
        rival = await asyncio.to_thread(
            functools.partial(fastest_before.fastest, keeps_packed_weights=keeps),
            *(key.fingerprint, key.device, key.bounds, inputs, others, store, key.precision),
        )
        if rival is None or took <= rival.kernel * (1 + run.settings.regression_threshold / 100):
            return
        kept = await asyncio.to_thread(fastest_before.candidate, key.fingerprint, rival.body, store)
    except StoreUnusable as error:
        stored_verdicts.warn(run, error)
        return
    if kept is not None:
        kept[0].precision = precision  # the same body may have been validated under another one since
        await _validate(run, as_kept(*kept, report.specimen), rival)


def as_kept(
    candidate: schema.Candidate, pinned_known: bool, specimen: class_schema.Specimen | None
) -> schema.Candidate:
    """A kernel as the store has it. Where that does not say if it is pinned, the class does."""
    if not pinned_known and specimen is not None and not specimen.ops:
        candidate.pinned = True  # as every kernel is for a class without a graph (generators/search.py)
    return candidate


async def _validate(run: Run, candidate: schema.Candidate, rival: Rival) -> None:
    """Validate the kernel of before, and keep what was found out, so that the next generation knows it."""
    written = candidate.note or (f"by {candidate.generator}" if candidate.generator else "")
    candidate.note = f"{written}; of {rival.reached_at[:10]}, {rival.kernel:.1f} µs then".removeprefix("; ")
    candidate.generator = recall.NAME
    source = next((one for one in run.report.sources if one.generator == recall.NAME), None)
    if source is not None:
        source.samples += 1
        source.problem = ""
    what = f"faster kernel of {rival.reached_at[:10]}"
    run.progress("validating", f"Validating the {what}", 95)
    try:
        async with run.timing():
            validated = await device_requests.validate(run, candidate, "eager", lambda fraction: 95)
    except UserError as error:
        log.warning("%s: %s", what, error)
        run.report.warnings.append(f"The {what} could not be validated again: {error}")
        return
    chosen = fastest(run.report.candidates)
    # What is chosen is kept at the end, with the times of torch.compile.
    if validated is not None and (chosen is None or run.report.candidates[chosen] is not validated):
        await stored_verdicts.keep(run, validated)

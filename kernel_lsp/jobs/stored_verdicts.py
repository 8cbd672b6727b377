"""Stores and looks up verdicts of this machine (``store/validations.py``) for the device that a job runs on."""

from __future__ import annotations

import asyncio
import logging

from kernel_lsp import kernel_file, schema
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.jobs import several_envelopes
from kernel_lsp.jobs.job_store import store_of
from kernel_lsp.jobs.run import Run
from kernel_lsp.store import recalled, validations
from kernel_lsp.store.graphs import graph_of
from kernel_lsp.store.targets import target_of
from kernel_lsp.store.validations import About, Known, Validation, key_for

log = logging.getLogger("kernel_lsp.jobs")


async def known(run: Run, parsed: kernel_file.KernelFile) -> Known:
    """What this machine found before for the class of a job and the body of a kernel file; a fault is a warning."""
    target = run.job.target
    key = key_for(run.first_device, target.fingerprint, parsed.actual_body, run.settings.bounds, run.job.precision)
    if key is None:
        return Known()
    try:
        place = run.job.path, run.settings.root, target.class_name
        return await asyncio.to_thread(validations.known_of, key, store_of(run.settings), parsed.body, place)
    except StoreUnusable as error:
        warn(run, error)
        return Known()


async def fitted_the_graph(run: Run, parsed: kernel_file.KernelFile) -> bool:
    """Whether this machine found the kernel correct before for a class with the graph that the class has now; a fault is a warning."""
    specimen = run.looked_at or run.report.specimen
    if specimen is None or not specimen.graph:
        return False
    try:
        found = await asyncio.to_thread(recalled.find, specimen.graph, "", store_of(run.settings))
    except StoreUnusable as error:
        warn(run, error)
        return False
    return any(one.kernel.body == parsed.actual_body for one in found)


async def keep(run: Run, validated: schema.Validated) -> None:
    """Remember what was found out just now. A store that cannot be written is a warning, never the job's error.

    A class that was changed while it was validated is left out: which of its versions was validated is not known.
    """
    body = kernel_file.body_hash(validated.candidate.source)
    precision = validated.candidate.precision
    key = key_for(run.first_device, run.job.target.fingerprint, body, run.settings.bounds, precision)
    if key is None or run.job.training or not run.is_unchanged():
        return
    found = Validation(validated.verdict, validated.measurement, run.report.device, validations.now())
    try:
        await asyncio.to_thread(validations.keep, key, found, store_of(run.settings), _about(run, validated))
    except StoreUnusable as error:
        warn(run, error)


def _about(run: Run, validated: schema.Validated) -> About:
    """What history keeps beside the verdict."""
    settings, candidate, target = run.settings, validated.candidate, run.job.target
    return About(
        target_of(run.job.path, settings.root, target.class_name, target.fingerprint),
        candidate.source,
        *(candidate.generator, candidate.note, candidate.variant),
        thorough=settings.thorough or run.job.follow_up,
        settings={
            "seconds": settings.seconds,
            "device": settings.device,
            "baselines": settings.baselines,
            "bounds": settings.bounds,
            "precision": candidate.precision,
            "pinned": candidate.pinned,
        },
        # What computes several graphs is not looked for by one of them.
        graph=None
        if several_envelopes.envelopes(candidate.source) > 1
        else graph_of(run.looked_at or run.report.specimen, candidate.pinned, settings.bounds),
    )


def warn(run: Run, error: StoreUnusable) -> None:
    """Say it once in a job: a file that cannot be read cannot be written either, most of the time."""
    log.warning("%s", error)
    told = error.template.partition("{")[0]
    if not any(warning.startswith(told) for warning in run.report.warnings):
        run.report.warnings.append(str(error))

"""How the kernel that a job chose gets into its file; or to the client, which asks the user first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import errors, kernel_file, schema
from kernel_lsp.jobs import header
from kernel_lsp.jobs.run import Run


@dataclass(frozen=True)
class Place:
    """Where a kernel goes.

    Attributes:
        source: as the header names the class.
        replaces: as the header of the class's file that is there names it, which may be from before it was moved.
        proposing: the client decides.
    """

    kernel: Path
    source: str
    replaces: str
    overwrite: bool
    proposing: bool


def place_for(run: Run) -> Place:
    """The place of a job's kernel. What must not be replaced is told before any work is done for it.

    Raises:
        KernelFileEdited, KernelFileNotOurs: see ``kernel_file.may_write``.
    """
    job, settings, kernel = run.job, run.settings, run.kernel
    overwrite = settings.overwrite if job.overwrite is None else job.overwrite
    source = kernel_file.source_name(job.path, job.target.class_name, kernel, settings.root)
    there = kernel_file.existing(job.path, job.target.class_name, settings.kernel_folder)
    replaces = there[1].source if there is not None and there[0] == kernel else source
    place = Place(kernel, source, replaces, overwrite, job.write and job.review and os.path.lexists(kernel))
    if job.write:
        _may_write(place)
    return place


def write(run: Run, place: Place, chosen: schema.Validated) -> None:
    """Write the kernel file, or put what it would hold into the job's ``proposal``.

    Raises:
        UserError: it may not be written, or cannot.
    """
    job, report, kernel = run.job, run.report, place.kernel
    made = header.build(place.source, job.target, report, chosen)
    text = kernel_file.assemble(made, chosen.candidate.source)
    there = _body(kernel) if place.proposing else None  # None: the user has deleted it meanwhile
    same = there == chosen.candidate.source
    if there is not None and not same:
        job.proposal = text
        return
    run.progress("writing", f"Writing {kernel.name}", 97)
    report.file = str(kernel if _says(kernel, text) else _write(run, place, text, place.overwrite or same))


def _says(kernel: Path, text: str) -> bool:
    """Whether a kernel file is what would be written, but for the moment: then a difference in git would tell nothing."""
    try:
        there, made = kernel_file.read(kernel), kernel_file.parse(text)
    except errors.NotAKernelFile:
        return False
    return there.body == made.body and header.says_the_same(there.header, made.header)


def _write(run: Run, place: Place, text: str, overwrite: bool) -> Path:
    """Write the kernel file: under another name where the kernel of another class has taken it since the job began."""
    job = run.job
    for last in (False, True):
        kernel = place.kernel
        if job.kernel is None:
            kernel = kernel_file.find_kernel(job.path, job.target.class_name, run.settings.kernel_folder)
        try:
            kernel_file.write(kernel, text, place.replaces, overwrite)
        except errors.KernelFileNotOurs:
            if last or job.kernel is not None:
                raise
        else:
            break
    return kernel


def _body(kernel: Path) -> str | None:
    """The body of the kernel file; its text where it is none any more, None where it is gone."""
    try:
        return kernel_file.read(kernel).body
    except errors.NotAKernelFile:
        return "" if os.path.lexists(kernel) else None


def _may_write(place: Place) -> None:
    """An edited file may be the subject of a proposal; one that is not ours may not."""
    try:
        kernel_file.may_write(place.kernel, place.replaces, place.overwrite)
    except errors.KernelFileEdited:
        if not place.proposing:
            raise

"""What this machine validated, kept and found again (``store/validations.py``) for the device that a job runs on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from kernel_lsp import kernel_file, schema
from kernel_lsp.errors import StoreUnusable, UserError
from kernel_lsp.jobs.run import Run
from kernel_lsp.settings import Settings
from kernel_lsp.store import validations
from kernel_lsp.store.database import default_path
from kernel_lsp.store.validations import Validation, key_for

log = logging.getLogger("kernel_lsp.jobs")


async def keep_devices(settings: Settings, hello: dict[str, Any]) -> None:
    """Remember what a worker said of its devices, for editors that ask before it runs. A fault is logged."""
    try:
        devices = hello.get("devices") or []
        await asyncio.to_thread(validations.keep_devices, settings.interpreter_command(), devices, default_path())
    except (UserError, ValueError, TypeError) as error:
        log.warning("%s", error)


async def known(run: Run, body: str) -> Validation | None:
    """What this machine found before for the class of a job and a body (its hash); a fault is a warning."""
    key = key_for(run.first_device, run.job.target.fingerprint, body)
    try:
        return await asyncio.to_thread(validations.find, key, default_path()) if key is not None else None
    except StoreUnusable as error:
        warn(run, error)
        return None


async def keep(run: Run, judged: schema.Judged) -> None:
    """Remember what was found out just now. A store that cannot be written is a warning, never the job's error.

    A class that was changed while it was validated is left out: which of its versions was validated is not known.
    """
    key = key_for(run.first_device, run.job.target.fingerprint, kernel_file.body_hash(judged.candidate.source))
    if key is None or run.job.training or not run.is_unchanged():
        return
    found = Validation(judged.verdict, judged.measurement, run.report.device, validations.now())
    try:
        await asyncio.to_thread(validations.keep, key, found, default_path())
    except StoreUnusable as error:
        warn(run, error)


def warn(run: Run, error: UserError) -> None:
    log.warning("%s", error)
    if str(error) not in run.report.warnings:
        run.report.warnings.append(str(error))

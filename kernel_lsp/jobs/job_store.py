"""The store that a job keeps its findings in, and what a worker said of its devices there."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from kernel_lsp.errors import UserError
from kernel_lsp.settings import Settings
from kernel_lsp.store import environments
from kernel_lsp.store.database import path_for

log = logging.getLogger("kernel_lsp.jobs")


def store_of(settings: Settings) -> Path | None:
    """The file of the store that the settings mean; None: nothing is kept."""
    return path_for(settings.store, settings.root)


async def keep_devices(settings: Settings, hello: dict[str, Any]) -> None:
    """Remember what a worker said of its devices, for editors that ask before it runs. A fault is logged."""
    try:
        devices = hello.get("devices") or []
        command = settings.interpreter_command()
        await asyncio.to_thread(environments.keep_devices, command, devices, store_of(settings))
    except (UserError, ValueError, TypeError) as error:
        log.warning("%s", error)

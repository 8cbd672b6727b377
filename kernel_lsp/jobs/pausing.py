"""Whether background work has to wait: on battery, and while other programs keep the GPU busy."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from kernel_lsp import nvml
from kernel_lsp.jobs import power
from kernel_lsp.settings import Settings

#: seconds after which to look again
AGAIN_SECONDS = 60.0
#: seconds in which the use of the GPU counts, and after which a driver that does not answer is left alone
_LOOK_SECONDS, _MOST_SECONDS = 1.0, 10.0


async def why(settings: Settings) -> str:
    """``this machine runs on its battery``, ``the GPU is 87 % busy by pid 4711 (python)``; "" where nothing has to wait."""
    if settings.pause_on_battery and power.on_battery():
        return "this machine runs on its battery"
    if settings.pause_while_gpu_busy and settings.device != "interpreter":
        used = nvml.said(await others(settings.device))
        return f"the GPU is {used}" if used else ""
    return ""


async def others(device: str) -> list[nvml.Use]:
    """The processes that keep a device busy, but for this one's own. Asked in a process of its own: drivers hang."""
    index = device.partition(":")[2]
    name = nvml.name_of(int(index) if index.isdigit() else 0)
    program = [sys.executable, "-I", "-S", nvml.__file__, name, str(_LOOK_SECONDS), str(os.getpid())]
    try:
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return []
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _MOST_SECONDS)
        return [nvml.Use(**use) for use in json.loads(out)]
    except (TimeoutError, ValueError, TypeError):
        return []
    finally:
        if process.returncode is None:
            process.kill()

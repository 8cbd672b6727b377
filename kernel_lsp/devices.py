"""Which of a worker's devices a setting means."""

from __future__ import annotations

import contextlib
from typing import Any

from kernel_lsp import schema


def pick_device(hello: dict[str, Any], wanted: str) -> schema.Device | None:
    """The device that the setting means, of those the worker has; the worker itself complains where there is none."""
    devices = [schema.from_json(schema.Device, data) for data in hello.get("devices") or []]
    gpus = [device for device in devices if device.kind == "cuda"]
    if wanted != "interpreter" and gpus:
        number = 0
        with contextlib.suppress(ValueError):
            number = int(wanted.partition(":")[2] or 0)
        return gpus[number] if number < len(gpus) else None
    return next((device for device in devices if device.kind != "cuda"), None)

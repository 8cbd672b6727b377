"""Which of a worker's devices a setting means, and how much memory of a GPU a validation takes at the least."""

from __future__ import annotations

import contextlib
from typing import Any

from kernel_lsp import schema

#: Bytes of a GPU for the CUDA contexts of a validation's processes, whatever the module: 5.4 GB was the median of what problems of
#: KernelBench with tensors of less than 0.3 GB took of an H100.
CONTEXTS = 5_000_000_000
#: Parts into which a GPU's memory is divided where several problems of an evaluation share it; each holds some to its end.
MEMORY_PARTS = 16


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

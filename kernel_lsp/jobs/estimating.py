"""What a kernel is estimated to gain, asked of an idle worker.

It is no job: it holds no lock and reports to no listener, and a job that is submitted ends it at once.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kernel_lsp import class_schema, schema
from kernel_lsp.jobs import example_table
from kernel_lsp.jobs.client import Worker
from kernel_lsp.recording import examples
from kernel_lsp.settings import Settings

SECONDS = 60.0  # for importing, exporting and planning
WARM_SECONDS = 600.0  # for a worker that leaves the processor to others; no job waits for it


async def estimate(worker: Worker, settings: Settings, path: Path, class_name: str) -> class_schema.Estimate | None:
    """The estimate for a class, or None where it cannot be looked at without real tensors.

    Raises:
        UserError: the worker cannot start, or something is wrong with the class.
    """
    recorded = await asyncio.to_thread(examples.table_for, path, class_name)
    hello = await worker.start()
    if hello.get("problems"):  # the first job says which
        return None
    table = settings.inputs_for(path, class_name)
    params: dict[str, Any] = {
        "path": str(path),
        "class_name": class_name,
        "inputs": example_table.joined(table, recorded, lambda: example_table.whole_of(path, class_name)),
        "device": settings.device,
        "precision": settings.precision,
        "target": settings.estimate_gpu,
        "seconds": SECONDS,
    }
    # Not waiting for the answer to a cancel: a worker that is slow to give it is at work for somebody by then.
    await worker.request("warm", {}, seconds=WARM_SECONDS, stage="starting", leave=True)
    answer = await worker.request("estimate", params, seconds=SECONDS + 10, stage="estimating", leave=True)
    return schema.from_json(class_schema.Estimate, answer["estimate"])  # type: ignore[no-any-return]

"""The pipeline of ``kernel-lsp explain``: fingerprint → the worker runs the synthesizer's stages → format the text."""

from __future__ import annotations

from kernel_lsp.jobs.formatting import format_source
from kernel_lsp.jobs.run import Run


async def explain(run: Run) -> None:
    """Fill ``run.job.explained``.

    Raises:
        UserError: the class cannot be imported, run or exported; ruff is missing.
    """
    run.take_fingerprint()
    await run.require_inputs()
    await run.start_worker()
    run.progress("generating", "Following the synthesizer", 10)
    answer = await run.ask_worker("explain", "exporting the graph and following the synthesizer")
    explained = answer["explained"]
    if explained["text"] is not None:
        for one in [*explained["text"]["kernels"], explained["text"]["host"]]:
            one["source"] = await format_source(one["source"])
    run.job.explained = explained

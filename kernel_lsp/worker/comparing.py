"""The child that times a kernel beside the one before it."""

from __future__ import annotations

import os
from typing import Any

from kernel_lsp import schema
from kernel_lsp.validation import paired_timing
from kernel_lsp.worker import trials, validating


def compare(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"comparison": SpeedComparison}`` of ``given["sources"]``, the kernel of now and the one before. Only a GPU has times.

    Raises:
        UserError: importing or building fails.
    """
    kernel_class = validating.kernel_class_of(given)
    for text in given["sources"]:
        if rejected := validating.rejected_by_its_text(given, text):
            return {"comparison": schema.to_json(schema.SpeedComparison(missing=rejected.reason))}
    sources = [
        validating.written(text, os.path.join(trials.sources_of(given), f"kernel_{i}"), kernel_class)
        for i, text in enumerate(given["sources"])
    ]
    reach = trials.fork(given, os.path.join(given["scratch"], "trial"), sources[0])
    try:
        referee = validating.referee_of(given, reach, emit)
        if referee.mode == "interpreter":
            return {"comparison": schema.to_json(schema.SpeedComparison(missing=validating.why_no_gpu()))}
        found = paired_timing.compare(referee, sources, emit)
        found.beside = referee.other_work
        return {"comparison": schema.to_json(found)}
    finally:
        reach.kill()

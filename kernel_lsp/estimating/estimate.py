"""The estimate for one class: eager's time over that of the synthesizer's kernels, and what it rests on."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch.export import ExportedProgram

from kernel_lsp import class_schema, errors
from kernel_lsp.specimen import exporting, faking, looking
from kernel_lsp.synthesis.schedule.target import target

from . import hints
from .kernels import fastest
from .operators import eager
from .times import seconds, work_of


def estimate(
    exported: ExportedProgram,
    *,
    class_name: str,
    gpu: str | None = None,
    least_bytes: int | None = None,
    precision: str = "strict",
) -> class_schema.Estimate:
    """What a kernel for an exported module would gain on the GPU called ``gpu``, by default an H100.

    ``least_bytes``: what inputs, parameters and results come to. Where no kernel can be written ``speedup`` is None and ``missing``
    says why; what torch does slowly is found there, too.
    """
    on = target(gpu)
    found = eager(exported)
    result = class_schema.Estimate(
        target=on.name,
        launches=found.launches,
        bytes=found.bytes,
        least_bytes=least_bytes or 0,
        eager=seconds(work_of(one, on) for one in found.operators) * 1e6,
        hints=hints.of(found.operators, torch.__version__, torch.backends.cudnn.version() or 0),
    )
    try:
        kernels = fastest(exported, found.operators, on, class_name, precision)
    except errors.UserError as error:
        result.missing = str(error)
        return result
    result.kernel = kernels.seconds * 1e6
    result.kernel_launches, result.kernel_bytes = kernels.launches, kernels.bytes
    if result.kernel > 0:
        result.speedup = result.eager / result.kernel
    return result


def of_what_breaks(given: dict[str, Any], user_module: ModuleType, cls: type) -> class_schema.Estimate | None:
    """For a class whose forward does not run with fake tensors: the hint that torch.compile cannot take it whole, if that is why."""
    class_name, path, mode = given["class_name"], given["path"], faking.mode()
    example = looking.example_of(given, user_module, cls, mode)
    module = looking.constructed(given, user_module, cls, example, mode)
    error = exporting.export(module, example, path, class_name, ran=True, training=bool(given.get("training")))
    if not isinstance(error, errors.NotExportable) or not exporting.breaks_the_graph(error):
        return None
    on = target(given.get("gpu"))
    return class_schema.Estimate(
        target=on.name, missing=str(error), hints=[hints.of_a_break(error.path or path, error.line)]
    )

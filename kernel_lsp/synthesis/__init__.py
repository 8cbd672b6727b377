"""The rule-based generator: an exported ATen graph becomes readable Triton source.

capture (torch.export) → lowering (ATen → graph) → rewrite → regions (what shares a kernel) → schedule (which
template, which tile) → templates and emit (a kernel's text) → host and source (the file).
"""

from __future__ import annotations

import contextlib

import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.errors import NothingToLower
from kernel_lsp.schema import Candidate

from .kernel.domain import Unalignable
from .printing.source import compose, written
from .schedule.choices import choices
from .schedule.replay import replayable, worthwhile
from .schedule.schedules import Product
from .schedule.target import Target, target
from .stages import check_writable, counted, failures, lowered, planned, told

GENERATOR = "synthesizer"
#: operators that are tried as calls of torch, too
_LEFT = frozenset(["aten.conv1d", "aten.conv2d", "aten.conv3d"])
#: kernels of a module beyond which the default schedule is the only one
_MANY = 24
#: the label of the candidate that launches nothing itself but in its first calls
_REPLAYED = "replayed as a CUDA graph"


def synthesize(
    module: torch.nn.Module,
    exported: ExportedProgram,
    *,
    class_name: str,
    import_from: str,
    import_file: str = "",
    check_indices: bool = False,
    gpu: str | None = None,
) -> list[Candidate]:
    """Candidates for ``module``, the default schedule first, then alternatives worth timing.

    ``exported`` comes from ``capture``; ``import_from`` is the module that a kernel file gets the class from, and
    ``import_file`` its file where no import statement can name it (see ``loading``). ``check_indices``: the kernel files raise
    where an index is out of range. ``gpu``: the name of the GPU that schedules are for, by default an H100. Raises ``errors.NothingToLower`` naming the operator that stopped it, or ``NotWritable``.
    """
    with told(exported, class_name):
        return _candidates(module, exported, class_name, import_from, import_file, check_indices, target(gpu))


def _candidates(
    module: torch.nn.Module,
    exported: ExportedProgram,
    class_name: str,
    import_from: str,
    import_file: str,
    check_indices: bool,
    on: Target,
) -> list[Candidate]:
    def of(left: frozenset[str]) -> list[Candidate]:
        return _scheduled(module, exported, class_name, import_from, import_file, check_indices, left, on)

    result = of(frozenset())
    # cuDNN is the faster one most often, and so comes first; what is measured decides.
    if any(op.startswith("aten.conv") for op in _operators(exported)) and _LEFT.isdisjoint(result[0].kept):
        with contextlib.suppress(NothingToLower, Unwritable, Unalignable):
            left = [one for one in of(_LEFT) if one.variant in ("", _REPLAYED)]
            for one in left:
                one.variant = ", ".join(filter(None, ["convolutions left to torch", one.variant]))
            for other in result:
                other.parent = 0
            result[:0] = left
    return result


def _operators(exported: ExportedProgram) -> set[str]:
    return {str(node.target) for node in exported.graph.nodes if node.op == "call_function"}


def _scheduled(
    module: torch.nn.Module,
    exported: ExportedProgram,
    class_name: str,
    import_from: str,
    import_file: str,
    check_indices: bool,
    left: frozenset[str],
    on: Target,
) -> list[Candidate]:
    """Candidates with the operators in ``left`` as calls of torch."""
    found = planned(lowered(exported, left), check_indices=check_indices)
    check_writable(found, class_name)
    graph, kernels, hints = found.graph, found.kernels, found.hints
    note = f"{len(graph.lowered)} of {len(graph.lowered) + len(graph.kept)} ops in Triton"
    if graph.kept:
        note += f"; torch runs {', '.join(sorted(set(graph.kept)))}"
    offered = choices(kernels, on, hints)
    result: list[Candidate] = []
    # One choice for all kernels of a deep network changes little, and each costs seconds to write and to compile.
    for label, chosen in offered if len(kernels) <= _MANY else offered[:1]:
        made = written(module, exported, found, class_name=class_name, chosen=chosen, check_indices=check_indices)
        labels = [label]
        if not result and replayable(host := made.host.plan, graph) and worthwhile(host, graph, chosen, on, hints):
            labels.append(_REPLAYED)
        for variant in labels:
            text = compose(
                module,
                found,
                made,
                class_name=class_name,
                import_from=import_from,
                import_file=import_file,
                replayed=variant == _REPLAYED,
            )
            if any(text == known.source for known in result):
                continue
            candidate = Candidate(text, GENERATOR, note=note, variant=variant, kept=counted(graph.kept))
            precisions = [schedule.precision for schedule in chosen.values() if isinstance(schedule, Product)]
            candidate.arithmetic = precisions[0] if precisions else ""
            candidate.parent = 0 if result else None
            candidate.faults = [error.to_json() for error in failures(graph, class_name)]
            result.append(candidate)
    return result

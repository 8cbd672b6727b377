"""The rule-based generator: an exported ATen graph becomes readable Triton source.

capture (torch.export) → lowering (ATen → graph) → rewrite → regions (what shares a kernel) → schedule (which
template, which tile) → templates and emit (a kernel's text) → host and source (the file).
"""

from __future__ import annotations

import contextlib
from collections import Counter

import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.errors import LoweringFailed, NothingToLower, NotWritable
from kernel_lsp.schema import Candidate

from .graph.value import Graph
from .kernel.domain import Unalignable
from .kernel.steps import Kernel
from .operators import lower
from .operators.lower import Untraceable
from .passes.regions import plan
from .passes.rewrite import share, split_long_reductions
from .passes.sizes import name_quotients
from .printing import bounds
from .printing.source import compose
from .schedule.choices import choices
from .schedule.schedules import Product
from .schedule.target import target

GENERATOR = "synthesizer"
#: operators that are tried as calls of torch, too
_LEFT = frozenset(["aten.conv1d", "aten.conv2d", "aten.conv3d"])
#: launches beyond which a module is left to torch
_MOST_LAUNCHES = 512
_UNROLLED = (
    "its forward comes to {}, one after the other (a loop over time, or over many layers, is unrolled), "
    "and each launch would cost more than its work"
)
#: kernels of a module beyond which the default schedule is the only one
_MANY = 24


def synthesize(
    module: torch.nn.Module,
    exported: ExportedProgram,
    *,
    class_name: str,
    import_from: str,
    import_file: str = "",
    check_indices: bool = False,
) -> list[Candidate]:
    """Candidates for ``module``, the default schedule first, then alternatives worth timing.

    ``exported`` comes from ``capture``; ``import_from`` is the module that a kernel file gets the class from, and
    ``import_file`` its file where no import statement can name it (see ``loading``). ``check_indices``: the kernel files raise
    where an index is out of range. Raises ``errors.NothingToLower`` naming the operator that stopped it, or ``NotWritable``.
    """
    try:
        return _candidates(module, exported, class_name, import_from, import_file, check_indices)
    except Untraceable as error:
        path, line = error.place or (None, None)
        raise NothingToLower(class_name=class_name, op=error.op, detail=error.detail, path=path, line=line) from error
    except Unwritable as error:
        raise NotWritable(class_name=class_name, detail=error.detail) from error
    except RecursionError:
        detail = _UNROLLED.format(f"{len(exported.graph.nodes)} operations")
        raise NotWritable(class_name=class_name, detail=detail) from None
    except Unalignable as error:
        raise NothingToLower(
            class_name=class_name,
            op="view",
            detail=f"How its elements are addressed cannot be written in one kernel ({error}).",
        ) from error


def _candidates(
    module: torch.nn.Module,
    exported: ExportedProgram,
    class_name: str,
    import_from: str,
    import_file: str,
    check_indices: bool,
) -> list[Candidate]:
    values = [node.meta.get("val") for node in exported.graph.nodes]
    if found := next((v.dtype for v in values if isinstance(v, torch.Tensor) and v.is_complex()), None):
        detail = "complex numbers cannot be computed with in Triton; view them as pairs of real ones."
        raise NothingToLower(class_name=class_name, op=str(found).removeprefix("torch."), detail=detail)

    def of(left: frozenset[str]) -> list[Candidate]:
        return _scheduled(module, exported, class_name, import_from, import_file, check_indices, left)

    result = of(frozenset())
    # cuDNN is the faster one most often, and so comes first; what is measured decides.
    if any(op.startswith("aten.conv") for op in _operators(exported)) and _LEFT.isdisjoint(result[0].kept):
        with contextlib.suppress(NothingToLower, Unwritable, Unalignable):
            left = of(_LEFT)[0]
            left.variant = "convolutions left to torch"
            for other in result:
                other.parent = 0
            result.insert(0, left)
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
) -> list[Candidate]:
    """Candidates with the operators in ``left`` as calls of torch."""
    graph = lower(exported, left)
    hints = graph.hints
    defined = name_quotients(graph)
    share(graph)
    chunks = split_long_reductions(graph, hints)
    steps = plan(graph, bounds.computed(graph) if check_indices else None)
    kernels = [s for s in steps.steps if isinstance(s, Kernel)]
    if not kernels:
        first = graph.kept[0] if graph.kept else "forward"
        why = "" if graph.kept else "It computes nothing."
        if graph.faults:
            why = str(_failures(graph, class_name)[0])
        raise NothingToLower(class_name=class_name, op=first, detail=why, kept=_counted(graph.kept))
    if len(kernels) > _MOST_LAUNCHES:
        raise Unwritable("forward", _UNROLLED.format(f"{len(kernels)} kernels"))
    note = f"{len(graph.lowered)} of {len(graph.lowered) + len(graph.kept)} ops in Triton"
    if graph.kept:
        note += f"; torch runs {', '.join(sorted(set(graph.kept)))}"
    offered = choices(kernels, target(), hints)
    result: list[Candidate] = []
    # One choice for all kernels of a deep network changes little, and each costs seconds to write and to compile.
    for label, chosen in offered if len(kernels) <= _MANY else offered[:1]:
        text = compose(
            module,
            exported,
            graph,
            steps,
            hints,
            chunks,
            defined,
            class_name=class_name,
            import_from=import_from,
            import_file=import_file,
            chosen=chosen,
            check_indices=check_indices,
        )
        if any(text == known.source for known in result):
            continue
        made = Candidate(text, GENERATOR, note=note, variant=label, kept=_counted(graph.kept))
        precisions = [schedule.precision for schedule in chosen.values() if isinstance(schedule, Product)]
        made.arithmetic = precisions[0] if precisions else ""
        made.parent = 0 if result else None
        made.faults = [error.to_json() for error in _failures(graph, class_name)]
        result.append(made)
    return result


def _failures(graph: Graph, class_name: str) -> list[LoweringFailed]:
    """The bugs that the lowerings showed, each once."""
    return [
        LoweringFailed(class_name=class_name, op=one.operator, file=one.file, at=one.line, detail=one.message)
        for one in dict.fromkeys(graph.faults)
    ]


def _counted(kept: list[str]) -> dict[str, int]:
    """Operators that stay with torch → how often, named as in ``Specimen.ops``: ``aten.conv2d`` without the overload."""
    return dict(Counter(".".join(name.split(".")[:2]) for name in kept))

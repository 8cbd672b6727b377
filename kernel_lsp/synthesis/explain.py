"""What each stage of the synthesizer makes of a module, as plain data (``kernel-lsp explain``)."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.errors import UserError
from kernel_lsp.size_text import python

from .explained_graph import ValueNames, graph_stage
from .graph.sizes import Index
from .graph.value import Fold, Scan, TorchCall, Value, View, operands
from .kernel.execution_plan import Call, Kernel, Planned, Step, fold_operand_index, hint
from .kernel.reads import beneath, read
from .printing.envelope import name_arguments
from .printing.formula import formula
from .printing.host import Function
from .printing.sharing import form
from .printing.source import written
from .printing.triton import definition
from .schedule.choices import choices, ranked
from .schedule.cost import cost
from .schedule.extents import contract_atoms
from .schedule.target import Target, target
from .stages import check_writable, lowered, planned, told

STAGES = ("graph", "kernels", "schedule", "text")


def explain(
    module: torch.nn.Module,
    exported: ExportedProgram,
    *,
    class_name: str,
    stages: Collection[str] = STAGES,
    target_name: str | None = None,
    left: frozenset[str] = frozenset(),
    check_indices: bool = False,
    precision: str = "strict",
    keep_packed_weights: bool = False,
) -> dict[str, Any]:
    """The stages of the synthesizer for ``module``, as JSON data: ``graph``, ``kernels``, ``schedule``, ``text``, ``error``.

    ``exported`` comes from ``capture``. A stage that is not among ``stages``, or was not reached, is None; ``error`` is
    what ended the synthesizer on the way (``NothingToLower``, ``NotWritable``) as JSON, None where there is a kernel.
    ``target_name``: the GPU that schedules are chosen for, and on which products may be made of halves; where None, schedules
    are those for the default and nothing is rounded. ``left``: operators that stay with
    torch ("aten.conv2d"). ``check_indices``, ``precision`` and ``keep_packed_weights`` as for ``synthesize``.
    """
    result: dict[str, Any] = {"class_name": class_name, **dict.fromkeys(STAGES), "error": None}
    try:
        with told(exported, class_name):
            _fill(result, module, exported, stages, target_name, left, check_indices, precision, keep_packed_weights)
    except UserError as error:
        result["error"] = error.to_json()
    return result


def _fill(
    result: dict[str, Any],
    module: torch.nn.Module,
    exported: ExportedProgram,
    stages: Collection[str],
    target_name: str | None,
    left: frozenset[str],
    check_indices: bool,
    precision: str,
    keep_packed_weights: bool,
) -> None:
    class_name, gpu = result["class_name"], target(target_name)
    how: dict[str, Any] = {"precision": precision, "keep_packed_weights": keep_packed_weights}
    found = lowered(exported, left, gpu, halves=target_name is not None, **how)
    with contextlib.suppress(Unwritable):  # then the arguments keep the names of the exported nodes
        name_arguments(found.graph, Signature(module, *exported.example_inputs))
    names = ValueNames(found.graph)
    if "graph" in stages:
        result["graph"] = graph_stage(exported, found, names)
    steps = planned(found, check_indices=check_indices)
    if "kernels" in stages:
        result["kernels"] = _kernels(steps, names)
    check_writable(steps, class_name)
    if "schedule" in stages:
        result["schedule"] = _schedules(steps, gpu)
    if "text" in stages:
        result["text"] = _text(module, exported, steps, class_name, gpu, check_indices)


# -- kernels --------------------------------------------------------------------------------------------------------


def _kernels(found: Planned, names: ValueNames) -> list[dict[str, Any]]:
    """Kernels, torch calls and views in the order in which they run."""
    stored = {v: names[v] for v in found.plan.stored}
    return [_step(number, step, found, names, stored) for number, step in enumerate(found.plan.steps, 1)]


def _step(number: int, step: Step, found: Planned, names: ValueNames, stored: dict[Value, str]) -> dict[str, Any]:
    if isinstance(step, Kernel):
        return {"step": number, "kind": "kernel", **_kernel(step, found, names, stored)}
    if isinstance(step, Call):
        op = step.values[0].op
        assert isinstance(op, TorchCall)
        target = (op.call or op).target.removeprefix("torch.ops.")
        read = list(dict.fromkeys(names[v] for v in operands(step.values[0])))
        return {
            "step": number,
            "kind": "torch call",
            "operator": target,
            "stores": _named(step.values, names),
            "loads": read,
        }
    op = step.value.op
    assert isinstance(op, View)
    return {
        "step": number,
        "kind": "view",
        "view": op.name,
        "stores": _named([step.value], names),
        "loads": [names[op.operand]],
    }


def _kernel(kernel: Kernel, found: Planned, names: ValueNames, stored: dict[Value, str]) -> dict[str, Any]:
    domain, hints = kernel.domain, found.hints

    def atoms(group: Iterable[sympy.Symbol]) -> list[dict[str, Any]]:
        return [
            {"atom": a.name, "size": _text_of(domain.size[a]), "example": hint(domain.size[a], hints)} for a in group
        ]

    stores: list[dict[str, Any]] = []
    whole = len(kernel.stores) - len(kernel.partials)
    for i, (v, index) in enumerate(kernel.stores):
        # Of a split reduction the kernel fills the buffer of what each chunk gives.
        into, at = kernel.destination(v, index)
        held, place = (kernel.partials[i - whole], ["chunk", *_index(index)]) if i >= whole else (into, _index(at))
        stores.append({"value": names[held], "index": place, "formula": formula(v, stored)})
    stores += [{"value": names[v], "index": ["0"], "formula": formula(v, stored)} for v in kernel.peaks]
    loads: list[dict[str, Any]] = [
        {"value": names[v], "index": _index(index), "shape": _index(shape)}
        for v, index, shape in dict.fromkeys(kernel.accesses)
    ]
    listed = {load["value"] for load in loads}
    loads += [
        {"value": names[v], "index": None, "shape": None}
        for v in read(kernel, found.plan.stored)
        if names[v] not in listed
    ]
    return {
        "stores": stores,
        "in_chunks": kernel.in_chunks,
        "domain": {
            "kept": atoms(domain.kept),
            "reduced": atoms(domain.reduced),
            "split": {a.name: _text_of(e) for a, e in domain.parts.items()},
        },
        "folds": [_fold(kernel, v, names) for v in kernel.folds],
        "contraction": _contraction(kernel, found, names) if kernel.contract is not None else None,
        "loads": loads,
    }


def _fold(kernel: Kernel, v: Value, names: ValueNames) -> dict[str, Any]:
    op = v.op
    assert isinstance(op, Fold)
    index = kernel.placed[v]
    return {
        "value": names[v],
        "kind": "scan" if isinstance(op, Scan) else "reduction",
        "of": op.kind,
        "operand": names[op.operand],
        "dims": list(op.dims),
        "operand_index": _index(fold_operand_index(kernel, v, index)),
        "index": _index(index),
    }


def _contraction(kernel: Kernel, found: Planned, names: ValueNames) -> dict[str, Any]:
    """The product of a kernel: what einsum calls it, and the role of each axis."""
    value = kernel.contract
    assert value is not None
    op, groups = kernel.product, contract_atoms(kernel)
    roles = {"rows": groups.rows, "columns": groups.cols, "batch": groups.batch}
    axes = []
    for letter in dict.fromkeys(op.axes + op.summed):
        left, right = op.varies(letter)
        role = "batch" if left and right else "columns" if right else "rows"
        size = op.size(letter)
        axes.append(
            {
                "axis": letter,
                "role": "outer" if letter in op.outer else "summed" if letter in op.summed else role,
                "size": _text_of(size),
                "example": hint(size, found.hints),
            }
        )
    return {
        "value": names[value],
        "equation": f"{op.left_axes},{op.right_axes}->{op.axes}",
        "left": names[op.left],
        "right": names[op.right],
        "left_loads": _named(beneath([op.left], found.plan.stored), names),
        "right_loads": _named(beneath([op.right], found.plan.stored), names),
        "axes": axes,
        "atoms": {role: [a.name for a in group] for role, group in roles.items()},
    }


# -- schedules and text ---------------------------------------------------------------------------------------------


def _schedules(found: Planned, gpu: Target) -> dict[str, Any]:
    """The schedules of each kernel, the chosen one first, then by estimated seconds; and what would be timed."""
    kernels = []
    for number, step in enumerate(found.plan.steps, 1):
        if not isinstance(step, Kernel):
            continue
        listed = [
            {
                "kind": type(schedule).__name__,
                "text": str(schedule),
                "parameters": dataclasses.asdict(schedule),
                "chosen": place == 0,
                "cost": dataclasses.asdict(cost(step, schedule, gpu, found.hints)),
            }
            for place, schedule in enumerate(ranked(step, gpu, found.hints))
        ]
        kernels.append({"step": number, "schedules": listed})
    return {
        "target": {"name": gpu.name, "architecture": gpu.architecture, "note": gpu.note},
        "kernels": kernels,
    }


def _text(
    module: torch.nn.Module,
    exported: ExportedProgram,
    found: Planned,
    class_name: str,
    gpu: Target,
    check_indices: bool,
) -> dict[str, Any]:
    """The kernels' definitions with the steps that launch them, and the host function's."""
    chosen = choices(found.kernels, gpu, found.hints)[0][1]
    made = written(module, exported, found, class_name=class_name, chosen=chosen, check_indices=check_indices)
    numbers = {step: number for number, step in enumerate(found.plan.steps, 1)}
    functions: dict[str, tuple[Function, list[int]]] = {}
    for launch in made.host.launches:
        for program in launch.programs:
            key = form(definition(program, "", looped=True))
            functions.setdefault(key, (made.host.kernels[key], []))[1].append(numbers[launch.kernel])
    return {
        "kernels": [
            {"name": function.program.name, "steps": steps, "source": function.text + "\n"}
            for function, steps in functions.values()
        ],
        "host": {"name": made.function, "source": "\n\n".join(made.host_functions) + "\n"},
    }


# -- words ----------------------------------------------------------------------------------------------------------


def _named(values: Iterable[Value], names: ValueNames) -> list[str]:
    return [names[v] for v in values]


def _text_of(expr: sympy.Expr) -> str:
    return python(expr, {})


def _index(index: Index) -> list[str]:
    return [python(e, {}) for e in index]

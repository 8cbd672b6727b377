"""The specimen child: import the user's module, find out what it is, and have kernels written for it."""

from __future__ import annotations

import inspect
import sys
import time
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors, schema
from kernel_lsp.worker import building, examples, faults, importing

#: a size that no tensor reaches, for dimensions without an upper bound
UNBOUNDED = 2**31 - 1


@dataclass
class Seen:
    """What looking at a class gives. ``exported``: the ExportedProgram, or the NotExportable error."""

    specimen: schema.Specimen
    module: torch.nn.Module
    exported: Any
    user_module: ModuleType
    cls: type
    example: examples.Example


def warm_up() -> None:
    """One tiny export: the first costs seconds of imports, the next tenths of a second."""
    from kernel_lsp.synthesis import synthesize as synthesize_module
    from kernel_lsp.synthesis.capture import capture

    class Tiny(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x + 1, dim=-1)

    exported = capture(Tiny(), (torch.randn(4, 6),), {})
    exported.module()
    synthesize_module(Tiny(), exported, class_name="Tiny", import_from="tiny")
    fake_run(Tiny(), (torch.randn(4, 6),), {})


def introspect(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """Schema.Specimen as JSON, for ``given``'s path, class_name and inputs."""
    return schema.to_json(look(given, emit).specimen)


def synthesize(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen and the candidates that the rule-based synthesizer writes. Raises NothingToLower."""
    seen = look(given, emit)
    specimen, module, exported = seen.specimen, seen.module, seen.exported
    if isinstance(exported, errors.UserError):
        raise exported
    from kernel_lsp.synthesis import synthesize as write

    emit("progress", {"stage": "synthesize", "message": f"writing {given['class_name']}Triton", "fraction": 0.5})
    candidates = write(
        module, exported, class_name=given["class_name"], import_from=specimen.module, import_file=specimen.file
    )
    return {"specimen": schema.to_json(specimen), "candidates": [schema.to_json(c) for c in candidates]}


def look(given: dict[str, Any], emit: Any) -> Seen:
    """Import, construct, run and export ``given``'s class. Raises the errors of each step, but NotExportable."""
    path, class_name = given["path"], given["class_name"]
    began = time.monotonic()

    def stage(message: str, fraction: float) -> None:
        print(f"[{time.monotonic() - began:6.2f} s] {message}", file=sys.stderr)
        emit("progress", {"stage": "introspect", "message": message, "fraction": fraction})

    stage(f"importing {class_name}", 0.0)
    user_module, cls = importing.load(path, class_name)
    torch.set_num_threads(given["threads"])
    stage("making example inputs", 0.1)
    example = examples.resolve(user_module, cls, path, class_name, given.get("inputs"))
    example.args, example.kwargs = pytree.tree_map(_to_cpu, (example.args, example.kwargs))
    stage(f"constructing {class_name}", 0.2)
    module = building.construct(cls, example, path, class_name).cpu()
    stage("running forward", 0.3)
    # With fake tensors: shapes and FLOPs without the arithmetic. What they cannot do is done for real.
    faked = fake_run(module, example.args, example.kwargs)
    if faked is None:
        outputs, flops = building.call(module, example.args, example.kwargs, path, class_name), None
    else:
        outputs, flops = faked
        building.check_outputs(outputs, path, class_name)
    stage("exporting the graph", 0.4)
    exported = _export(module, example, path, class_name, ran=faked is None)
    specimen = schema.Specimen(
        class_name=class_name,
        module=importing.import_from(cls, path, class_name),
        file=importing.import_file_of(cls, path, class_name, given.get("kernel")),
        init_args=_shown(example),
        inputs_from=example.inputs_from,
        inputs=_input_specs(cls, example, exported),
        outputs=[spec("output" if i is None else f"output{i}", t) for i, t in _numbered(outputs)],
        parameters=[spec(name, t) for name, t in [*module.named_parameters(), *module.named_buffers()]],
        flops=flops,
    )
    if isinstance(exported, torch.export.ExportedProgram):
        specimen.ops = _ops(exported)
        specimen.dynamic = _dynamic(exported)
    specimen.bytes = _least_bytes(module, example, outputs)
    if isinstance(exported, errors.UserError) and not given.get("tolerate_no_export", True):
        raise exported
    return Seen(specimen, module, exported, user_module, cls, example)


def _to_cpu(leaf: Any) -> Any:
    return leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf


def fake_run(module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[Any, int] | None:
    """(outputs as fake tensors, FLOPs of the matmul-like operators), or None where fake tensors do not do."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        fake = pytree.tree_map(lambda t: mode.from_tensor(t) if isinstance(t, torch.Tensor) else t, (args, kwargs))
        with torch.no_grad(), mode, FlopCounterMode(display=False) as counter:
            outputs = module(*fake[0], **fake[1])
        return outputs, counter.get_total_flops()
    except Exception:
        return None


def _export(module: torch.nn.Module, example: examples.Example, path: str, class_name: str, ran: bool) -> Any:
    """The ExportedProgram, or the NotExportable error: a module that cannot be exported can still be judged."""
    from kernel_lsp.synthesis.capture import capture

    try:
        return capture(module, example.args, example.kwargs)
    except Exception as error:
        traceback.print_exc()
        if not ran:  # perhaps it does not even run
            building.call(module, example.args, example.kwargs, path, class_name)
        at, line = path, faults.line_in(path, error)
        if line is None:
            at, line = _forward_at(module) or (path, 1)
        return errors.NotExportable(path=at, line=line, class_name=class_name, detail=faults.sentence(error))


def _forward_at(module: torch.nn.Module) -> tuple[str, int] | None:
    """(file, line) of forward: of a class that the user's file only imports, in the package."""
    try:
        function = inspect.unwrap(type(module).forward)
        return inspect.getsourcefile(function) or "", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return None


def spec(name: str, tensor: torch.Tensor) -> schema.TensorSpec:
    """What the wire says of a tensor."""
    return schema.TensorSpec(
        name=name,
        shape=[int(n) for n in tensor.shape],
        dtype=str(tensor.dtype).removeprefix("torch."),
        stride=[int(n) for n in tensor.stride()],
        device=str(tensor.device),
    )


def _numbered(outputs: Any) -> list[tuple[int | None, torch.Tensor]]:
    tensors = [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor)]
    return [(None, tensors[0])] if len(tensors) == 1 else list(enumerate(tensors))


def input_names(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for every leaf of (args, kwargs), in the order of the flattened tree: ``x``, ``mask``, ``pair[0]``."""
    parameters = [p for p in inspect.signature(cls.forward).parameters.values()][1:]  # type: ignore[attr-defined]
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = []
    for key_path, _ in pytree.tree_flatten_with_path((args, kwargs))[0]:
        _, first, *rest = key_path
        index = getattr(first, "idx", None)
        if index is None:
            name = str(first.key)  # type: ignore[attr-defined]
        else:
            name = positional[index] if index < len(positional) else f"args[{index - len(positional)}]"
        names.append(name + pytree.keystr(tuple(rest)))
    return names


def _input_specs(cls: type, example: examples.Example, exported: Any) -> list[schema.TensorSpec]:
    leaves = pytree.tree_leaves((example.args, example.kwargs))
    names = input_names(cls, example.args, example.kwargs)
    symbols: list[list[str | None] | None] = [None] * len(leaves)
    if isinstance(exported, torch.export.ExportedProgram):
        values = {n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"}
        for i, user_input in enumerate(exported.graph_signature.user_inputs[: len(leaves)]):
            value = values.get(user_input) if isinstance(user_input, str) else None
            if isinstance(value, torch.Tensor):
                symbols[i] = [None if str(n).isdigit() else str(n) for n in value.shape]
    specs = []
    for name, leaf, dynamic in zip(names, leaves, symbols, strict=True):
        if isinstance(leaf, torch.Tensor):
            one = spec(name, leaf)
            one.dynamic = dynamic or [None] * leaf.dim()
            specs.append(one)
    return specs


def _ops(exported: torch.export.ExportedProgram) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in exported.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            name = str(node.target.overloadpacket).replace("::", ".")
            counts[name] = counts.get(name, 0) + 1
    return counts


def _dynamic(exported: torch.export.ExportedProgram) -> dict[str, list[int]]:
    ranges = {}
    for symbol, bounds in exported.range_constraints.items():
        ranges[str(symbol)] = [_bound(bounds.lower, 0), min(_bound(bounds.upper, UNBOUNDED), UNBOUNDED)]
    return ranges


def _bound(number: Any, otherwise: int) -> int:
    try:
        return int(number)
    except (OverflowError, TypeError, ValueError, AttributeError):  # sympy's infinities
        return otherwise


def _size(tensor: torch.Tensor) -> int:
    """Bytes that have to move: a dimension of stride 0 is read once."""
    count = 1
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= 1 if stride == 0 else int(n)
    return count * tensor.element_size()


def _least_bytes(module: torch.nn.Module, example: examples.Example, outputs: Any) -> int:
    """Least traffic: every input, parameter and buffer read once, every output written once."""
    read = [t for t in pytree.tree_leaves((example.args, example.kwargs)) if isinstance(t, torch.Tensor)]
    read += [*module.parameters(), *module.buffers()]
    written = [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor)]
    return sum(_size(t) for t in read) + sum(_size(t) for t in written)


def _shown(example: examples.Example) -> str:
    def brief(value: Any) -> str:
        text = " ".join(repr(value).split())
        return text if len(text) < 80 else f"{type(value).__name__}…"

    shown = ", ".join([*map(brief, example.init_args), *(f"{k}={brief(v)}" for k, v in example.init_kwargs.items())])
    return shown if len(shown) <= 200 else shown[:199] + "…"

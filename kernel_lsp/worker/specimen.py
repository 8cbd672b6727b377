"""The specimen child: import the user's module, find out what it is, and have kernels written for it."""

from __future__ import annotations

import inspect
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from kernel_lsp import errors, schema
from kernel_lsp.envelope.identity import identified
from kernel_lsp.envelope.interface import interface_of
from kernel_lsp.validation import channel
from kernel_lsp.worker import apart, building, examples, exporting, faking, importing

#: a size that no tensor reaches, for dimensions without an upper bound
UNBOUNDED = 2**31 - 1


@dataclass
class Seen:
    """What looking at a class gives. ``exported``: the ExportedProgram, or the NotExportable or AttributeAssigned error."""

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
    fake = faking.mode()
    with faking.within(fake):
        made = torch.nn.Linear(6, 3), torch.rand(4, 6)
    faking.run(made[0], made[1:], {}, fake)
    capture(made[0], made[1:], {})


def introspect(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """Schema.Specimen as JSON, for ``given``'s path, class_name and inputs."""
    return _learned(given, emit, lambda seen: schema.to_json(seen.specimen))


def interface(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen and, where there is a graph, the ``schema.Interface`` of the class."""
    return _learned(
        given, emit, lambda seen: {"specimen": schema.to_json(seen.specimen), "interface": _interface(seen)}
    )


def _interface(seen: Seen) -> dict[str, Any] | None:
    if isinstance(seen.exported, errors.UserError):
        return None
    found = interface_of(seen.module, seen.exported)
    return schema.to_json(found) if found is not None else None  # type: ignore[no-any-return]


def synthesize(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen, the interface and the candidates that the rule-based synthesizer writes. Raises NothingToLower."""
    from kernel_lsp.synthesis import synthesize as write

    def written(seen: Seen) -> dict[str, Any]:
        specimen, exported = seen.specimen, seen.exported
        if isinstance(exported, errors.UserError):
            raise exported
        emit("progress", {"stage": "synthesize", "message": f"writing {given['class_name']}Triton", "fraction": 0.5})
        candidates = write(
            seen.module,
            exported,
            class_name=given["class_name"],
            import_from=specimen.module,
            import_file=specimen.file,
            check_indices=given.get("bounds") == "check",
        )
        return {
            "specimen": schema.to_json(specimen),
            "interface": _interface(seen),
            "candidates": [schema.to_json(c) for c in candidates],
        }

    return _learned(given, emit, written)


def _learned(given: dict[str, Any], emit: Any, then: Callable[[Seen], dict[str, Any]]) -> dict[str, Any]:
    """``then`` of what there is to see, without tensors in memory where that does, else with real ones."""
    user_module, cls = _imported(given, emit)  # before the fork: it is the slow part, and must happen once

    def without_memory() -> dict[str, Any]:
        try:
            seen = _look(given, emit, user_module, cls, fake=True)
        except errors.UserError as error:  # perhaps only because of what an earlier attempt with fakes left behind
            raise faking.NeedsValues(str(error)) from error
        return then(seen)

    answer = apart.attempt(without_memory)
    return then(_look(given, emit, user_module, cls, fake=False)) if answer is None else answer


def look(given: dict[str, Any], emit: Any) -> Seen:
    """Import, construct, run and export ``given``'s class, for real: its tensors have values.

    Raises the errors of each step; that there is no graph is held in what it returns.
    """
    return _look(given, emit, *_imported(given, emit), fake=False)


def _stage(emit: Any, message: str, fraction: float) -> None:
    print(f"[{time.monotonic():6.2f} s] {message}", file=sys.stderr)
    emit("progress", {"stage": "introspect", "message": message, "fraction": fraction})


def _imported(given: dict[str, Any], emit: Any) -> tuple[ModuleType, type]:
    _stage(emit, f"importing {given['class_name']}", 0.0)
    return importing.load(given["path"], given["class_name"])


def _look(given: dict[str, Any], emit: Any, user_module: ModuleType, cls: type, *, fake: bool) -> Seen:
    """As ``look``. ``fake``: with tensors that take no memory; raises NeedsValues where these do not do.

    What is wrong with the user's code a real attempt has to say.
    """
    path, class_name = given["path"], given["class_name"]
    training = bool(given.get("training"))
    mode = faking.mode() if fake else None
    if not fake:  # the fork of a process that has used several threads may wait for them for ever
        torch.set_num_threads(given["threads"])
    _stage(emit, "making example inputs", 0.1)
    example = example_of(given, user_module, cls, mode)
    _stage(emit, f"constructing {class_name}", 0.2)
    module = _constructed(given, user_module, cls, example, mode)
    _stage(emit, "running forward", 0.3)
    # With fake tensors: shapes and FLOPs without the arithmetic. What they cannot do is done for real.
    faked = faking.run(module, example.args, example.kwargs, mode)
    if faked is None and fake:
        raise faking.NeedsValues("forward does not run with fake tensors")
    if faked is None:
        outputs, flops = building.call(module, example.args, example.kwargs, path, class_name), None
    else:
        outputs, flops = faked
        building.check_outputs(outputs, path, class_name)
        outputs = channel.plain(outputs)
    _stage(emit, "exporting the graph", 0.4)
    exported = exporting.export(module, example, path, class_name, ran=faked is None, training=training)
    if fake and isinstance(exported, errors.NotExportable):
        raise faking.NeedsValues(str(exported))
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
        training=training,
        forward=[*inspect.signature(cls.forward).parameters][1:],  # type: ignore[attr-defined]
        fake=fake and not any(map(_real, [*module.parameters(), *pytree.tree_leaves((example.args, example.kwargs))])),
    )
    if isinstance(exported, torch.export.ExportedProgram):
        specimen.ops = _ops(exported)
        specimen.graph, specimen.state = identified(exported)
        specimen.dynamic = _dynamic(exported)
        specimen.independent = _independent(exported)
    specimen.bytes = _least_bytes(module, example, outputs)
    if isinstance(exported, errors.UserError) and not given.get("tolerate_no_export", True):
        raise exported
    return Seen(specimen, module, exported, user_module, cls, example)


def example_of(
    given: dict[str, Any], user_module: ModuleType, cls: type, mode: FakeTensorMode | None
) -> examples.Example:
    """The example on the CPU, its inputs fake where ``mode`` is given and does for them."""
    path, class_name, table = given["path"], given["class_name"], given.get("inputs")
    try:
        example = examples.resolve(user_module, cls, path, class_name, table, inside=faking.within(mode))
    except errors.UserError:
        if mode is None:
            raise
        print("get_inputs() needs values; once more with real tensors", file=sys.stderr)
        example = examples.resolve(user_module, cls, path, class_name, table)
    example.args, example.kwargs = pytree.tree_map(_to_cpu, (example.args, example.kwargs))
    return example


def _constructed(
    given: dict[str, Any], user_module: ModuleType, cls: type, example: examples.Example, mode: FakeTensorMode | None
) -> torch.nn.Module:
    """The module on the CPU, its tensors fake where ``mode`` is given and does for them."""
    path, class_name, training = given["path"], given["class_name"], bool(given.get("training"))
    try:
        with faking.within(mode):
            return building.construct(cls, example, path, class_name, training).cpu()
    except errors.UserError:
        if mode is None:
            raise
        print(f"the constructor of {class_name} needs values; once more with real tensors", file=sys.stderr)
        # Anew, since the first attempt may have changed them.
        init = examples.constructor(user_module, cls, path, class_name, given.get("inputs"))
        example.init_args, example.init_kwargs = init
        return building.construct(cls, example, path, class_name, training).cpu()


def _real(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not faking.is_fake(leaf)


def _to_cpu(leaf: Any) -> Any:
    return leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf


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


def _independent(exported: torch.export.ExportedProgram) -> list[schema.Independent]:
    """Also of a graph with something in it that nobody thought of: then there is none."""
    from kernel_lsp.synthesis import independence

    try:
        return independence.find(exported)
    except Exception:
        traceback.print_exc()
        return []


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

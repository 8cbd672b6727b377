"""Look at a class: import the user's module, make an example, construct, run and export it."""

from __future__ import annotations

import inspect
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema, errors
from kernel_lsp.envelope.identity import identified
from kernel_lsp.specimen import (
    building,
    computed_indices,
    examples,
    exporting,
    faking,
    graphs,
    importing,
    narrowed_sizes,
    size_names,
    specs,
)
from kernel_lsp.validation import channel


@dataclass
class Seen:
    """What looking at a class gives. ``exported``: the ExportedProgram, or the error that says why there is none."""

    specimen: class_schema.Specimen
    module: torch.nn.Module
    exported: Any
    user_module: ModuleType
    cls: type
    example: examples.Example


def look(given: dict[str, Any], emit: Any) -> Seen:
    """Import, construct, run and export ``given``'s class, for real: its tensors have values.

    That there is no graph is held in what it returns.

    Raises:
        UserError: the error of the step that fails.
    """
    return attempt(given, emit, *imported(given, emit), fake=False)


def _stage(emit: Any, message: str, fraction: float) -> None:
    print(f"[{time.monotonic():6.2f} s] {message}", file=sys.stderr)
    emit("progress", {"stage": "introspect", "message": message, "fraction": fraction})


def imported(given: dict[str, Any], emit: Any) -> tuple[ModuleType, type]:
    """The user's module and class that a request names.

    Raises:
        UserError: what ``importing.load`` raises.
    """
    _stage(emit, f"importing {given['class_name']}", 0.0)
    return importing.load(given["path"], given["class_name"])


def attempt(given: dict[str, Any], emit: Any, user_module: ModuleType, cls: type, *, fake: bool) -> Seen:
    """As ``look``. ``fake``: with tensors that take no memory.

    What is wrong with the user's code a real attempt has to say.

    Raises:
        NeedsValues: tensors without memory do not do.
        UserError: a step fails; of the export only where the request wants a graph.
    """
    path, class_name = given["path"], given["class_name"]
    training = bool(given.get("training"))
    mode = faking.mode() if fake else None
    if not fake:  # the fork of a process that has used several threads may wait for them for ever
        torch.set_num_threads(given["threads"])
    _stage(emit, "making example inputs", 0.1)
    example = example_of(given, user_module, cls, mode)
    _stage(emit, f"constructing {class_name}", 0.2)
    module = constructed(given, user_module, cls, example, mode)
    converted = examples.conversion(module, example)
    if converted is not None:
        with faking.within(mode):
            module.to(converted)
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
    specimen = class_schema.Specimen(
        class_name=class_name,
        module=importing.import_from(cls, path, class_name),
        file=importing.import_file_of(cls, path, class_name, given.get("kernel")),
        init_args=_shown(example),
        inputs_from=example.inputs_from,
        examples=example.count,
        converted="" if converted is None else str(converted).removeprefix("torch."),
        inputs=specs.of_inputs(cls, example, exported),
        arguments=specs.other_arguments(cls, example),
        outputs=specs.of_outputs(outputs),
        parameters=[specs.spec(name, t) for name, t in [*module.named_parameters(), *module.named_buffers()]],
        flops=flops,
        training=training,
        forward=[*inspect.signature(cls.forward).parameters][1:],  # type: ignore[attr-defined]
        fake=fake and not any(map(_real, [*module.parameters(), *pytree.tree_leaves((example.args, example.kwargs))])),
    )
    if isinstance(exported, torch.export.ExportedProgram):
        specimen.ops = graphs.operators(exported)
        specimen.graph, specimen.state = identified(exported)
        specimen.dynamic = graphs.dynamic(exported)
        size_names.rename(specimen, cls.forward)  # type: ignore[attr-defined]
        specimen.independent = graphs.independent(exported)
        narrowed_sizes.note(specimen.inputs, module, example, mode)
        specimen.computes_indices = computed_indices.unbounded(exported)
    specimen.bytes = specs.least_bytes(module, example, outputs)
    if isinstance(exported, errors.UserError) and not given.get("tolerate_no_export", True):
        raise exported
    return Seen(specimen, module, exported, user_module, cls, example)


def example_of(
    given: dict[str, Any], user_module: ModuleType, cls: type, mode: FakeTensorMode | None
) -> examples.Example:
    """The example on the CPU, its inputs fake where ``mode`` is given and does for them.

    Raises:
        UserError: the example cannot be made, also not with real tensors.
    """
    path, class_name, table = given["path"], given["class_name"], given.get("inputs")
    number = int(given.get("example") or 0)
    try:
        example = examples.resolve(user_module, cls, path, class_name, table, inside=faking.within(mode), number=number)
    except errors.UserError:
        if mode is None:
            raise
        print("get_inputs() needs values; once more with real tensors", file=sys.stderr)
        example = examples.resolve(user_module, cls, path, class_name, table, number=number)
    example.args, example.kwargs = pytree.tree_map(_to_cpu, (example.args, example.kwargs))
    return example


def constructed(
    given: dict[str, Any], user_module: ModuleType, cls: type, example: examples.Example, mode: FakeTensorMode | None
) -> torch.nn.Module:
    """The module on the CPU, its tensors fake where ``mode`` is given and does for them.

    Raises:
        UserError: the constructor fails, also with real tensors.
    """
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


def _shown(example: examples.Example) -> str:
    def brief(value: Any) -> str:
        text = " ".join(repr(value).split())
        return text if len(text) < 80 else f"{type(value).__name__}…"

    shown = ", ".join([*map(brief, example.init_args), *(f"{k}={brief(v)}" for k, v in example.init_kwargs.items())])
    return shown if len(shown) <= 200 else shown[:199] + "…"

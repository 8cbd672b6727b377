"""The recorded shapes that a kernel is timed at: which, and inputs for them on the device."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.envelope.modes import mode_dependent
from kernel_lsp.specimen import examples, recorded, specs
from kernel_lsp.validation.inputs import Inputs
from kernel_lsp.validation.recorded import MOST, MOSTLY, RecordedShape, RecordedShapes

Made = tuple[tuple[Any, ...], dict[str, Any]]

#: the first of the seeds that values are made with; the checks use others
_SEED = 5000


def find(
    table: dict[str, Any] | None,
    module: torch.nn.Module,
    example: examples.Example,
    inputs: Inputs,
    training: bool = False,
) -> RecordedShapes | None:
    """The recorded shapes to time at: those with the most time, at most MOST, until they make up MOSTLY of it.

    ``table``: as ``recording.timed.table_of`` makes it. Left out are calls of modules that are constructed otherwise than
    the example's, and of one in another mode than ``training`` says, where that may compute something else. The example's
    own shapes count among them, and are not timed a second time. None where there is no such call.
    """
    if table is None:
        return None
    cls, found = type(module), RecordedShapes(table["from"], table["seconds"])
    others = {"of modules with other constructor arguments": 0, f"in {'eval' if training else 'training'} mode": 0}
    constructed, mode = others
    for call in table["shapes"]:
        if not _is_constructed_so(cls, example, call["init"]):
            others[constructed] += call["calls"]
        elif call["training"] != training and _depends_on_mode(module):
            others[mode] += call["calls"]
        elif (made := _without_memory(call)) is not None:
            _add(found, call, made, cls, inputs)
    found.left_out += [f"{count} call{'s' if count > 1 else ''} {words}" for words, count in others.items() if count]
    _cut(found)
    return found if found.shapes or found.example_calls or found.left_out else None


def _depends_on_mode(module: torch.nn.Module) -> bool:
    return bool(mode_dependent(module))


def _cut(found: RecordedShapes) -> None:
    """Keep the shapes with the most time; the example's own, where it was recorded, is one of them."""
    times = [(shape.seconds, shape) for shape in found.shapes]
    own: list[tuple[float, RecordedShape | None]] = [(found.example_seconds, None)] if found.example_calls else []
    total = sum(seconds for seconds, _ in [*times, *own])
    kept: list[RecordedShape] = []
    taken = 0.0
    for number, (seconds, shape) in enumerate(sorted([*times, *own], key=lambda pair: -pair[0])):
        if number == MOST or taken >= MOSTLY * total > 0:
            break
        taken += seconds
        kept += [shape] if shape is not None else []
    found.shapes = kept


def _add(found: RecordedShapes, call: dict[str, Any], made: Made, cls: type, inputs: Inputs) -> None:
    """Add the calls to those with the same inputs, or as a new kind."""
    sizes = sizes_of(inputs, made)
    if sizes is not None and sizes == inputs.example_sizes:
        found.example_calls += call["calls"]
        found.example_seconds += call["seconds"]
        return
    text = _text(made)
    known = next((shape for shape in found.shapes if shape.text == text), None)
    if known is not None:
        known.calls += call["calls"]
        known.seconds += call["seconds"]
        return
    tensors = [leaf for leaf in pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]
    names = specs.input_names(cls, *made)
    names = [n for n, leaf in zip(names, pytree.tree_leaves(made), strict=True) if isinstance(leaf, torch.Tensor)]
    said = [specs.spec(name, tensor) for name, tensor in zip(names, tensors, strict=True)]
    for one in said:
        one.device = str(inputs.device)
    make = _maker(inputs, call, sizes)
    found.shapes.append(RecordedShape(text, call["calls"], call["seconds"], said, made, make))


def _maker(inputs: Inputs, call: dict[str, Any], sizes: dict[str, int] | None) -> Callable[[], Made]:
    """A function that makes the inputs of a call, with other values each time.

    As the example's are made at other ``sizes``, where the call is one of these; else from the recording.
    """
    seeds: Iterator[int] = itertools.count(_SEED)
    inputs = replace(inputs, leaves=[replace(leaf) for leaf in inputs.leaves])  # the checks may fix dimensions later

    def make() -> Made:
        seed = next(seeds)
        if sizes is not None:
            return inputs.sample(sizes, "normal", seed)
        examples.seed_all(seed)
        with torch.device(inputs.device):
            return recorded.made(call)

    return make


def _without_memory(call: dict[str, Any]) -> Made | None:
    """The inputs of a call with tensors that take no memory; None where they cannot be made, or forward's take no such."""
    try:
        with torch.device("meta"):
            return recorded.made(call)
    except (ValueError, TypeError, RuntimeError, AttributeError):
        return None


def sizes_of(inputs: Inputs, made: Made) -> dict[str, int] | None:
    """The sizes of the dynamic dimensions at which ``inputs`` are what was ``made``; None where there are none.

    That is where structure, dtypes, memory order, fixed dimensions and all that is no tensor are the example's.
    """
    mine, form = pytree.tree_flatten((inputs.args, inputs.kwargs))
    theirs, other = pytree.tree_flatten(made)
    if form != other:
        return None
    for a, b in zip(mine, theirs, strict=True):
        same = isinstance(b, torch.Tensor) if isinstance(a, torch.Tensor) else type(a) is type(b) and a == b
        if not same:
            return None
    tensors = [leaf for leaf in theirs if isinstance(leaf, torch.Tensor)]
    sizes: dict[str, int] = {}
    for leaf, tensor in zip(inputs.leaves, tensors, strict=True):
        if leaf.example.dtype != tensor.dtype or leaf.example.dim() != tensor.dim():
            return None
        for symbol, size in zip(leaf.symbols, tensor.shape, strict=True):
            if symbol in inputs.example_sizes and sizes.setdefault(str(symbol), int(size)) != size:
                return None
    if sizes.keys() != inputs.example_sizes.keys():
        return None
    shaped = [leaf for leaf in pytree.tree_leaves(inputs.shaped(sizes)) if isinstance(leaf, torch.Tensor)]
    return sizes if all(map(_lie_alike, shaped, tensors)) else None


def _lie_alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have the same shape and memory order; the stride of a dimension of one element tells nothing."""
    if a.shape != b.shape:
        return False
    return 0 in a.shape or all(x == y for x, y, n in zip(a.stride(), b.stride(), a.shape, strict=True) if n > 1)


def _text(made: Made) -> str:
    """``float32[8, 512], mask=bool[8]``: what forward is given, in a line."""
    parts = [_one(value) for value in made[0]]
    return ", ".join(parts + [f"{name}={_one(value)}" for name, value in made[1].items()])


def _one(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        order = "" if value.is_contiguous() else f" with strides {list(value.stride())}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{order}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_one, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_one(item)}" for name, item in value.items()) + "}"
    return repr(value)


def _is_constructed_so(cls: type, example: examples.Example, init: dict[str, Any] | None) -> bool:
    """Whether the recorded constructor's arguments are the example's, as far as a recording tells."""
    if init is None:
        return True
    try:
        signature = inspect.signature(cls)
        ours = signature.bind(*example.init_args, **example.init_kwargs)
        theirs = signature.bind(*init["args"], **init["kwargs"])
    except (TypeError, ValueError):
        return True
    for name, parameter in signature.parameters.items():
        if name not in theirs.arguments:
            same = name not in ours.arguments or _equal(ours.arguments[name], parameter.default)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            same = _agrees(list(ours.arguments.get(name, ())), {"list": list(theirs.arguments[name])})
        elif parameter.kind is parameter.VAR_KEYWORD:
            same = _agrees(ours.arguments.get(name, {}), {"dict": theirs.arguments[name]})
        else:
            same = _agrees(ours.arguments.get(name, parameter.default), theirs.arguments[name])
        if not same:
            return False
    return True


def _agrees(value: Any, described: dict[str, Any]) -> bool:
    """Whether an argument may be the described one: of what is no tensor and no plain value a recording says nothing."""
    if "other" in described:
        return True
    if "tensor" in described:
        return isinstance(value, torch.Tensor) and _one(value.detach().contiguous()) == described["tensor"]
    for kind in ("list", "tuple"):
        if kind in described:
            items = described[kind]
            return isinstance(value, (list, tuple)) and len(value) == len(items) and all(map(_agrees, value, items))
    if "dict" in described:
        items = described["dict"]
        return (
            isinstance(value, dict) and value.keys() == items.keys() and all(_agrees(value[n], items[n]) for n in items)
        )
    return _equal(value, described.get("value"))


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except (RuntimeError, TypeError, ValueError):  # of tensors and arrays there is more than one answer
        return False

"""The module's graph: ``torch.export`` with every input dimension that can vary left dynamic."""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram
from torch.nn.modules.conv import _ConvNd
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from kernel_lsp.naming import attribute

from . import asked_sizes, attributes, containers, frames, masked_elements, only_sizes, own_hooks, records
from .linspaces import LinspacesOfSizes
from .recurrence import shapes_alone

#: how torch.export says that forward assigns a tensor to an attribute, or changes one in place
_ASSIGNED = (
    re.compile(r"The tensor attributes? (?P<names>.+?) (?:was|were) assigned during export"),
    re.compile(r"Constant (?P<names>\S+) is mutated in the forward method"),
)
#: errors that fixed sizes do not help against
_OF_THE_DATA = re.compile(r"data-dependent|DataDependent|unbacked", re.IGNORECASE)
#: where the functions are that export leaves of torch.vmap
_OF_VMAP = "torch._functorch.predispatch"


#: what a TorchFunctionMode sees of ``tensor.data``
_DATA, _NEW_DATA = torch.Tensor.data.__get__, torch.Tensor.data.__set__  # type: ignore[attr-defined]


class Assigned(Exception):
    """Forward changes a tensor that is neither argument nor buffer; ``attribute``: "self.cell.hidden".

    ``others``: more of them, as far as torch.export has named them. ``why``: what keeps a kernel from doing the same, where that is known.
    """

    def __init__(self, attribute: str, others: tuple[str, ...] = (), why: str = "") -> None:
        self.attribute, self.others, self.why = attribute, others, why
        super().__init__(f"forward assigns {attribute}")


#: convolutions beyond which the sizes of a network's inner images, nested quotients of the input's, take minutes to
#: reason about: DenseNet121 took 39 s to export on two cores, 11 s with the image's size fixed
_DEEP = 16


#: parts of a size beyond which torch.export takes minutes to reason about what is made of it: windows that are cut out of an image
#: and put back took 20 s with sizes of 130 parts, 2 s with the image's size fixed
_INVOLVED = 60


class _TooInvolved(Exception):
    """A size has become so long an expression that the image's size is better fixed."""


def capture(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, training: bool = False
) -> ExportedProgram:
    """Export ``module`` in eval (or training) mode on example inputs, undecomposed, without gradients.

    ``Dim.AUTO`` leaves a dimension dynamic unless the forward needs its value. Sizes 0 and 1 specialise in torch.export. Where torch.export
    cannot reason about the sizes only the first dimension of each tensor is left dynamic, then none; in a deep convolutional network, or
    where sizes become long expressions, the first of these is not tried or given up. A dimension of which the forward takes no other
    of the sizes that are tried is fixed (``only_sizes.fix``). Plain tensor attributes that forward assigns are inputs and results of the graph
    (``attributes.of``). Dataclasses in what forward returns are records in the form of the results (``records.Form``). Elements that a mask selects
    and that are assigned under it are computed with all others (``masked_elements.compute_all``). Views have the numbers for sizes that they
    are asked for (``asked_sizes``). The module's own hooks after forward are left out: a kernel's class has them, too (``own_hooks``).

    Raises:
        ArgumentChanged: forward changes a list or a dictionary that it is given.
        ArgumentsReplaced: a hook of the module's own gives forward other arguments.
        Assigned: forward assigns other attributes.
        NotRebuilt: forward returns a dataclass that cannot be made from its fields.
        Exception: what torch.export raises, whatever sizes are dynamic.
    """
    if module._forward_pre_hooks:
        own_hooks.refuse_replaced(module, args, kwargs or {})
    paths: list[str] = []
    while True:
        try:
            return _captured(module, args, kwargs or {}, training, paths)
        except Assigned as error:
            named = [name.removeprefix("self.") for name in (error.attribute, *error.others)]
            if error.why or not all(attributes.is_plain(module, path) and path not in paths for path in named):
                raise
            paths = sorted({*paths, *named})


def _captured(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool, paths: list[str]
) -> ExportedProgram:
    """``paths``: the attributes that forward assigns."""
    first: Exception | None = None
    attempts: list[Callable[[int], bool]] = [lambda i: i == 0, lambda i: False]
    if sum(isinstance(part, _ConvNd) for part in module.modules()) <= _DEEP:
        attempts.insert(0, lambda i: True)
    for dynamic in attempts:
        try:
            with _Limited() if dynamic(1) else contextlib.nullcontext():
                if paths:
                    return _with_attributes(module, args, kwargs, training, dynamic, paths)
                return _exported(_prepared(module, training), args, kwargs, dynamic)
        except (Assigned, containers.ArgumentChanged, records.NotRebuilt):
            raise
        except _TooInvolved:
            continue
        except Exception as error:
            first = first or error
            if _OF_THE_DATA.search(f"{type(error).__name__} {error}"):
                break
    assert first is not None
    raise first


def _with_attributes(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    training: bool,
    dynamic: Callable[[int], bool],
    paths: list[str],
) -> ExportedProgram:
    """The graph of calls that find in their attributes what a call before them has left there, as all but the first do."""
    first: dict[str, torch.Tensor] = {}
    try:
        while True:
            copied = _prepared(module, training)
            _name_keywords(copied, args, kwargs)
            carried = attributes.Carried(copied, paths, first)
            exported = _exported(carried.module, args, {**kwargs, **carried.arguments}, dynamic)
            more = attributes.settled(carried, (args, kwargs))
            if not more:
                return attributes.finished(exported, carried, args, kwargs)
            first |= more
    except attributes.Unkept as error:
        raise Assigned(f"self.{error.path}", why=error.why) from None


def _exported(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Callable[[int], bool]
) -> ExportedProgram:
    """``dynamic``: whether dimension i of a tensor may vary."""
    args, kwargs = containers.own((args, kwargs))
    shapes = pytree.tree_map(lambda value: _sizes(value, dynamic), (args, kwargs))
    shapes[1].update(attributes.fixed(kwargs))
    _name_keywords(module, args, kwargs)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        # One dictionary by parameter name would need the signature; export takes the pair as it is
        # when positional shapes are a tuple and keyword shapes follow by name.
        named: Any = shapes[0] if not kwargs and not _takes_any(module) else _by_name(module, shapes)
        try:
            with shapes_alone(), _SizesChecked(), LinspacesOfSizes(), _DataDetached(module), frames.recorded():
                with asked_sizes.AskedSizes() as views:
                    exported = torch.export.export(module, args, kwargs, dynamic_shapes=named, strict=False)
                if views.used and asked_sizes.are_changed(exported):
                    exported = torch.export.export(module, args, kwargs, dynamic_shapes=named, strict=False)
            _check_assigned([str(warning.message) for warning in said])
            only_sizes.fix(exported)
            exported = exported.run_decompositions({}) if _traced_again(exported) else exported
            asked_sizes.settle(exported)
            if not any(_in_place(node) for node in exported.graph.nodes):
                masked_elements.compute_all(exported)
            return exported
        except (Assigned, attributes.Unkept, containers.ArgumentChanged, records.NotRebuilt):
            raise
        except Exception as error:
            _check_assigned([*(str(warning.message) for warning in said), str(error)])
            raise


class _SizesChecked(TorchFunctionMode):
    """In this context operators take only sizes that are equal where they have to be, although torch's shape functions take others.

    ``torch._scaled_mm`` takes matrices [M, K] and [K, N]: the two K are compared on a GPU only. Attention takes as many values as keys:
    on a CPU torch reads beyond the end of the shorter ones.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch._scaled_mm and len(args) > 1:
            torch._check(args[0].shape[1] == args[1].shape[0])
        if func is torch.nn.functional.scaled_dot_product_attention:
            key, value = (kwargs[name] if name in kwargs else args[i] for i, name in ((1, "key"), (2, "value")))
            torch._check(key.shape[-2] == value.shape[-2])
        return func(*args, **kwargs)


class _DataDetached(TorchFunctionMode):
    """In this context ``tensor.data`` is ``tensor.detach()``, which torch.export follows: the same elements in the same memory.

    Of ``tensor.data = other`` it would keep nothing: that raises ``Assigned``.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == _DATA:
            return args[0].detach()
        if func == _NEW_DATA:
            held = [*self.module.named_parameters(), *self.module.named_buffers()]
            name = next((name for name, tensor in held if tensor is args[0]), None)
            raise Assigned("a tensor's data" if name is None else attribute(name))
        return func(*args, **(kwargs or {}))


class _Limited(TorchFunctionMode):
    """In this context a tensor whose size is too long an expression raises ``_TooInvolved``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            for size in tensor.shape if isinstance(tensor, torch.Tensor) else ():
                if isinstance(size, torch.SymInt):
                    parts = sympy.preorder_traversal(size.node.expr)
                    if next(itertools.islice(parts, _INVOLVED, None), None) is not None:
                        raise _TooInvolved
        return result


def _check_assigned(messages: list[str]) -> None:
    """Look through torch's messages for a tensor that forward changes and the graph does not.

    Raises:
        Assigned: one of them names it.
    """
    for pattern in _ASSIGNED:
        for found in filter(None, map(pattern.search, messages)):
            # but for a recurrent layer's own list of its parameters
            names = [name for name in found["names"].split(", ") if "._flat_weights" not in name]
            if names:
                first, *others = (name if name.startswith("self.") else f"self.{name}" for name in names)
                raise Assigned(first, tuple(others))


def _prepared(module: torch.nn.Module, training: bool) -> torch.nn.Module:
    """A copy in the mode to be traced in, without hooks after forward, which returns records for dataclasses and may not change its arguments."""
    copied = _copied(module).train(training)
    own_hooks.leave_out(copied)
    containers.refuse_changes(copied)
    records.return_records(copied)
    return copied


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares the tensors: tracing assigns attributes, but computes with fake tensors alone."""
    held = [t for part in module.modules() for t in vars(part).values() if isinstance(t, torch.Tensor)]
    tensors = [*module.parameters(), *module.buffers(), *held]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in tensors})


def _traced_again(exported: ExportedProgram) -> bool:
    """Whether the graph becomes one of plain operators where it is traced once more, which takes its time.

    What changes a tensor in place becomes what returns a new one; ``torch.vmap`` and blocks that set whether gradients are computed,
    or switch autocast off, go. Which tensors autocast rounds depends on the device, so a block that switches it on stays.
    """
    nodes = [node for part in exported.graph_module.modules() for node in getattr(part, "graph", exported.graph).nodes]
    called = [node for node in nodes if node.op == "call_function"]
    if any(node.target is torch.ops.higher_order.wrap_with_autocast and node.args[2] for node in called):
        return False
    again = (torch.ops.higher_order.wrap_with_autocast, torch.ops.higher_order.wrap_with_set_grad_enabled)
    return any(
        node.target in again or getattr(node.target, "__module__", "") == _OF_VMAP or _in_place(node) for node in called
    )


def _in_place(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable and schema.name != "aten::detach_"


def _sizes(value: Any, dynamic: Callable[[int], bool]) -> Any:
    if isinstance(value, torch.Tensor):
        return {i: Dim.AUTO if dynamic(i) else Dim.STATIC for i in range(value.dim())}
    return None


def _takes_any(module: torch.nn.Module) -> bool:
    """Whether forward is declared with ``*args``, which torch.export wants as a tuple of its own."""
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def _name_keywords(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let forward's signature name what its ``**kwargs`` are given: torch.export wants shapes by parameter."""
    signature = inspect.signature(module.forward)
    *others, last = signature.parameters.values() or [None]
    if last is None or last.kind is not inspect.Parameter.VAR_KEYWORD:
        return
    forward = module.forward

    def named(*given: Any, **more: Any) -> Any:
        return forward(*given, **more)

    more = signature.bind(*args, **kwargs).arguments.get(last.name, {})
    parameters = [*others, *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in more)]
    named.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    module.forward = named  # type: ignore[method-assign]


def _by_name(module: torch.nn.Module, shapes: tuple[Any, Any]) -> dict[str, Any]:
    """The shapes by the names of forward's parameters."""
    return inspect.signature(module.forward).bind(*shapes[0], **shapes[1]).arguments

"""The envelope: the conditions under which the kernel stands for the module, as Python in the generated class.

What a graph is not needed for (``Signature``, ``size_conditions``, ``structure``, ``configuration``, ``hooks``,
``mode_dependent``) also serves kernels that a language model wrote.
"""

from __future__ import annotations

import inspect
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from kernel_lsp.naming import attribute

from ..errors import Unwritable
from ..graph.value import Graph, Input, Shape, Value, input_of
from ..printing.sizes import python
from .held import absent, literal, of_every_module, read, setting, settings_in

_TORCH_DERIVED = frozenset(
    [
        "in_features",
        "out_features",
        "num_features",
        "normalized_shape",
        "num_channels",
        "embedding_dim",
        "num_embeddings",
        "training",
        "inplace",
        "in_channels",
        "out_channels",
        "kernel_size",
        "elementwise_affine",
        "affine",
        "track_running_stats",
        "dump_patches",
        "call_super_init",
        "transposed",
        "output_padding",
    ]
)

#: names that every generated class uses
_USED = frozenset(["torch", "type", "super"])

_CONTAINERS = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)


class Signature:
    """How forward is declared, and Python for each tensor that it is given; conditions for what is no tensor.

    ``parameters``: as declared, without self; ``names``: as passed on; ``tensors``: (Python, tensor) in the order of
    the declaration. Raises ``Unwritable`` for an argument or default that no condition can be written for.
    """

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.parameters, self.names = _parameters(module, args, kwargs)
        if hidden := sorted(_USED & {*inspect.signature(module.forward).parameters}):
            raise Unwritable(
                "forward", f"its argument {hidden[0]} hides a name that the generated class uses; rename it"
            )
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        leaves: list[tuple[str, torch.Tensor]] = []
        self.conditions: list[str] = []
        order = [*inspect.signature(module.forward).parameters]
        given = {**bound.arguments}
        for name in order:
            if name in given:
                self._walk(name, given[name], leaves)
            else:
                self._absent(name, inspect.signature(module.forward).parameters[name])
        self.tensors: list[tuple[str, torch.Tensor]] = leaves
        self.flat = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]

    def name_arguments(self, graph: Graph) -> None:
        """Give the graph's arguments, which come in the order of the flattened call, their Python."""
        place = {id(leaf): text for text, leaf in self.tensors}
        arguments = [v for v in graph.inputs if isinstance(v.op, Input) and v.op.kind == "argument"]
        if len(arguments) != len(self.flat) or len(self.tensors) != len(self.flat):
            raise Unwritable("forward", "its arguments could not be matched with the exported graph")
        for value, leaf in zip(arguments, self.flat, strict=True):
            input_of(value).source = place[id(leaf)]

    def _walk(self, text: str, value: Any, leaves: list[tuple[str, torch.Tensor]]) -> None:
        if isinstance(value, torch.Tensor):
            leaves.append((text, value))
        elif isinstance(value, list | tuple) and type(value) in (list, tuple):
            self.conditions.append(f"isinstance({text}, {type(value).__name__}) and len({text}) == {len(value)}")
            for i, item in enumerate(value):
                self._walk(f"{text}[{i}]", item, leaves)
        elif type(value) is dict:
            self.conditions.append(f"isinstance({text}, dict) and [*{text}] == {literal([*value])}")
            for key, item in value.items():
                self._walk(f"{text}[{key!r}]", item, leaves)
        elif value is None or isinstance(value, bool):
            self.conditions.append(f"{text} is {value}")
        elif isinstance(value, int | float | str):
            # of the same type: 0.0 is not 0 (another result dtype), and a tensor may be equal to a number
            self.conditions.append(f"type({text}) is {type(value).__name__} and {setting(text, value)}")
        else:
            raise Unwritable("forward", f"the argument {text} is a {type(value).__name__}")

    def _absent(self, name: str, parameter: inspect.Parameter) -> None:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            self.conditions.append(f"not {name}")
        elif parameter.default is None or isinstance(parameter.default, bool):
            self.conditions.append(f"{name} is {parameter.default}")
        else:
            self._walk(name, parameter.default, [])


def _parameters(module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[list[str], list[str]]:
    """forward's parameters as declared, and as passed on to super().forward."""
    declared, passed = [], []
    star = False
    for name, p in inspect.signature(module.forward).parameters.items():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            declared.append(f"*{name}")
            passed.append(f"*{name}")
            star = True
            continue
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            declared.append(f"**{name}")
            passed.append(f"**{name}")
            continue
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            declared.append("*")
            star = True
        default = p.default
        if default is inspect.Parameter.empty:
            declared.append(name)
        elif default is None or isinstance(default, bool | int | float | str):
            declared.append(f"{name}={literal(default)}")
        else:
            raise Unwritable("forward", f"the default of {name} cannot be written down")
        passed.append(f"{name}={name}" if p.kind is inspect.Parameter.KEYWORD_ONLY else name)
    return declared, passed


def conditions(
    module: torch.nn.Module, graph: Graph, signature: Signature, used: list[tuple[str, Value]], requires: list[str]
) -> list[str]:
    """Conditions in order of what most often differs; all must hold for the kernel to run."""
    result: list[str] = []
    symbols: dict[sympy.Symbol, str] = {}
    later: list[tuple[str, sympy.Expr]] = []  # sizes that follow from those of an argument further on
    arguments = [v for v in graph.inputs if input_of(v).kind == "argument"]
    held = [v for _, v in used if input_of(v).kind != "argument"]
    result += signature.conditions
    types = structure(module)
    first = next((input_of(v).source for v in [*arguments, *held]), None)
    for value in [*arguments, *held]:
        if types and value in held:  # a module of another class may not have the parameter at all
            result, types = [*result, *types], []
        source = input_of(value).source
        result.append(f"type({source}) in _PLAIN")
        if source == first:  # Triton launches on the current device, whichever the tensors are on
            result.append(f"{source}.device.type == _DEVICE")
            result.append(f"({source}.device.index is None or {source}.device.index == torch.cuda.current_device())")
        else:
            result.append(f"{source}.device == {first}.device")
        result.append(f"{source}.dtype == {value.dtype}")
        if value in arguments and value.dtype.is_floating_point:
            result.append(f"not {source}.is_neg()")  # a view whose memory holds the negative of its values
        result += size_conditions(source, value.shape, symbols, later)
    result += [f"{text} == {python(n, symbols)}" for text, n in later]
    result += range_conditions(graph, symbols)
    result += requires
    # An integer times 2 is an integer, times 2.0 it is a float.
    exact = any(not value.dtype.is_floating_point for value in graph.inputs)
    result += [*types, *configuration(module, exact), *mode_conditions(module), *hooks(module)]
    result += gradient_conditions([input_of(v).source for v in [*arguments, *held] if v.dtype.is_floating_point])
    names = {input_of(v).source: name for name, v in used if v in held and name not in signature.names}
    return looked_up_once(result, names)


def size_conditions(
    source: str,
    shape: Shape,
    symbols: dict[sympy.Symbol, str],
    later: list[tuple[str, sympy.Expr]] | None = None,
) -> list[str]:
    """Conditions for the shape of ``source``; a symbol that is new stays free, and gets its Python in ``symbols``.

    ``later``: gets (Python, size) of what follows from symbols that are not known yet.
    """
    if all(n.is_number for n in shape):
        return [f"{source}.shape == {tuple(int(n) for n in shape)}"]
    result = [f"{source}.dim() == {len(shape)}"]
    for i, n in enumerate(shape):
        text = f"{source}.shape[{i}]"
        if isinstance(n, sympy.Symbol) and n not in symbols:
            symbols[n] = text
        elif later is not None and not n.free_symbols <= symbols.keys():
            later.append((text, n))
        else:
            result.append(f"{text} == {python(n, symbols)}")
    return [*result, f"0 < {source}.numel() < _MOST_ELEMENTS"]


def range_conditions(graph: Graph, symbols: dict[sympy.Symbol, str]) -> list[str]:
    """The sizes that the graph was exported for, and what torch.export assumed to be equal."""
    result = []
    for symbol, text in symbols.items():
        least, most = graph.ranges.get(symbol, (0, None))
        if least > 2:  # torch.export counts from 2; one is among the sizes that are checked
            result.append(f"{text} >= {least}")
        if most is not None:
            result.append(f"{text} <= {most}")
    result += [f"{python(a, symbols)} == {python(b, symbols)}" for a, b in dict.fromkeys(graph.equal)]
    result += [f"{python(size, symbols)} != 1" for size in dict.fromkeys(graph.not_one)]
    return result + [_relation(relation, symbols) for relation in dict.fromkeys(graph.assumed)]


def _relation(relation: sympy.Basic, symbols: dict[sympy.Symbol, str]) -> str:
    """A comparison of sizes as Python."""
    assert isinstance(relation, sympy.core.relational.Relational)
    operator = "==" if isinstance(relation, sympy.Eq) else relation.rel_op
    return f"{python(relation.lhs, symbols)} {operator} {python(relation.rhs, symbols)}"


def mode_conditions(module: torch.nn.Module) -> list[str]:
    """The mode that the module is in, where the other one may compute something else."""
    mode = mode_dependent(module)
    word = "" if module.training else "not "
    return (
        [f"{word}self.training", *(f"{word}{source}.training" for source in mode if source != "self")] if mode else []
    )


def gradient_conditions(tracked: list[str]) -> list[str]:
    """That nobody asks for gradients of the floating-point tensors ``tracked``, and that autocast is off."""
    either = " or ".join(f"{source}.requires_grad" for source in tracked)
    grad = f"not (torch.is_grad_enabled() and {either if len(tracked) == 1 else f'({either})'})"
    return [*([grad] if tracked else []), "not torch.is_autocast_enabled(_DEVICE)"]


def looked_up_once(conditions: list[str], names: dict[str, str]) -> list[str]:
    """The conditions with a name for each parameter and buffer: nn.Module takes a microsecond to look one up."""
    for source, name in names.items():
        conditions = [c.replace(f"{source}.", f"{name}.") for c in conditions]
        first = conditions.index(f"type({source}) in _PLAIN")
        conditions[first] = f"type({name} := {source}) in _PLAIN"
    return conditions


def structure(module: torch.nn.Module) -> list[str]:
    """What the module's tree is made of, parents first, so that what later conditions look at is there."""
    result: list[str] = []
    for source, child in _submodules(module):
        kind = type(child)
        if child is not module:
            known = getattr(torch.nn, kind.__name__, None) is kind  # others may have a module of that name, too
            text = f"type({source}) is torch.nn.{kind.__name__}"
            result.append(text if known else f'type({source}).__name__ == "{kind.__name__}"')
        if not _of_torch(child) or isinstance(child, _CONTAINERS):
            names = [name for name, value in child._modules.items() if value is not None]
            if names or isinstance(child, _CONTAINERS):
                result.append(f"[*{source}._modules] == {[*child._modules]}")
        missing = [*child._parameters.items(), *child._buffers.items(), *child._modules.items()]
        result += [f"{source}.{name} is None" for name, value in missing if value is None and name.isidentifier()]
    return result


def hooks(module: torch.nn.Module) -> list[str]:
    """That no submodule has got a hook since, which eager would call; hooks of the example are in its graph."""
    children = [child for child in module.modules() if child is not module]
    if not children or any(child._forward_hooks or child._forward_pre_hooks for child in children):
        return []
    return ["not any(m._forward_hooks or m._forward_pre_hooks for m in self.modules() if m is not self)"]


def configuration(module: torch.nn.Module, exact: bool) -> list[str]:
    """What the constructor may set and forward may read: numbers, strings and functions held by the module's tree.

    ``exact``: whether an equal number of another type would change the result's dtype.
    """
    result: list[str] = []
    mode = mode_dependent(module)
    for source, child in _submodules(module):
        own, kind = _of_torch(child), type(child)
        for name, value in vars(child).items():
            if of_every_module(name) or (own and (name.startswith("_") or name in _TORCH_DERIVED)):
                continue
            if name.startswith("_") and not read(kind, name):
                continue  # bookkeeping of a library; public names may be read by functions given the module
            drops = own and name == "p" and source in mode and "dropout" in kind.__name__.lower()
            if drops and not module.training:
                continue  # how much is dropped in training matters only there
            if (text := setting(f"{source}.{name}", value)) is not None:
                typed = exact and not own and type(value) in (int, float)
                result.append(f"type({source}.{name}) is {type(value).__name__} and {text}" if typed else text)
            elif isinstance(value, torch.Tensor):
                result += _held_tensor(f"{source}.{name}", value)
            elif inspect.isroutine(value) and hasattr(value, "__qualname__"):
                result.append(f"{source}.{name}.__qualname__ == {value.__qualname__!r}")
            elif not own:
                result += settings_in(kind, f"{source}.{name}", name, value)
        if not own:
            result += absent(source, child)
    return result


def _held_tensor(source: str, tensor: torch.Tensor) -> list[str]:
    """Conditions for a tensor that is neither parameter nor buffer: with one element it is a constant of the kernel."""
    if tensor.numel() != 1 or tensor.is_complex():
        return []  # lowering has stopped if forward reads it
    if tensor.device.type != "cpu":
        raise Unwritable("forward", f"{source} is a tensor but no buffer; register_buffer makes it one")
    return [
        f'{source}.device.type == "cpu"',
        f"{source}.dtype == {tensor.dtype}",
        f"{source}.tolist() == {literal(tensor.tolist())}",
    ]


def _submodules(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """(Python inside forward, module) for the tree."""
    return [(attribute(path), child) for path, child in module.named_modules()]


def _of_torch(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")


def mode_dependent(module: torch.nn.Module) -> list[str]:
    """The modules that may compute something else in training mode than in the eval mode that was exported."""
    result = []
    for source, child in _submodules(module):
        if not _of_torch(child):
            code = getattr(inspect.unwrap(type(child).forward), "__code__", None)
            depends = code is None or "training" in code.co_names or any("dropout" in n for n in code.co_names)
        else:
            special = (
                "dropout" in type(child).__name__.lower() or hasattr(child, "running_mean") or hasattr(child, "dropout")
            )
            depends = special and getattr(child, "p", 1.0) != 0.0
        if depends:
            result.append(source)
    return result

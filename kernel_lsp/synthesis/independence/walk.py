"""Follow each size symbol of an exported graph from the inputs to the outputs."""

from __future__ import annotations

import operator
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from kernel_lsp.class_schema import Independent

from ..graph.build import expr_of
from . import layers, pointwise, products, reductions, views
from .carry import Call, Carry, Dependent, Tracked, require

RULES: dict[str, Any] = {
    **pointwise.RULES,
    **reductions.RULES,
    **views.RULES,
    **products.RULES,
    **layers.RULES,
}

#: Compute nothing, and give no tensor.
_BOOKKEEPING = ("aten._assert_tensor_metadata", "aten.sym_constrain_range")
#: Random only in training, which the arguments say.
_RANDOM_IN_TRAINING = {"train": False, "dropout_p": 0.0}


def find(exported: ExportedProgram, most: int = 3) -> list[Independent]:
    """The dimensions along which slices of at least two can be computed by themselves, the largest first.

    Slices of one are another matter: torch.export counts sizes from two.
    """
    found = []
    for symbol, size in _symbols(exported):
        try:
            found.append(_follow(exported, symbol, size))
        except Dependent:
            continue
        if len(found) == most:
            break
    return found


def why_not(exported: ExportedProgram) -> dict[str, str]:
    """For each size symbol that cannot be sliced along, what mixes it."""
    reasons = {}
    for symbol, size in _symbols(exported):
        try:
            _follow(exported, symbol, size)
        except Dependent as reason:
            reasons[str(symbol)] = str(reason)
    return reasons


def _symbols(exported: ExportedProgram) -> list[tuple[sympy.Symbol, int]]:
    """(symbol, size in the example) of the inputs' dynamic dimensions, the largest first, in a fixed order."""
    return sorted(_hints(exported).items(), key=lambda pair: -pair[1])


def _hints(exported: ExportedProgram) -> dict[sympy.Symbol, int]:
    sizes: dict[sympy.Symbol, int] = {}
    for value, leaf in _inputs(exported):
        for expr, size in zip(_shape(value), leaf.shape, strict=True):
            if isinstance(expr, sympy.Symbol):
                sizes.setdefault(expr, int(size))
    return sizes


def _inputs(exported: ExportedProgram) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(as traced, as given) for each tensor input, in the order of the flattened arguments."""
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    leaves = pytree.tree_leaves(exported.example_inputs)
    pairs = zip(exported.graph_signature.user_inputs, leaves, strict=False)
    return [
        (values[name], leaf)
        for name, leaf in pairs
        if isinstance(leaf, torch.Tensor) and isinstance(name, str) and isinstance(values.get(name), torch.Tensor)
    ]


def _shape(value: torch.Tensor, others: dict[sympy.Symbol, int] | None = None) -> tuple[sympy.Expr, ...]:
    return tuple(expr_of(n).subs(others or {}) for n in value.shape)


def _follow(exported: ExportedProgram, symbol: sympy.Symbol, size: int) -> Independent:
    """Follow ``symbol`` through every node of the graph, from the tensors that have it.

    Raises:
        Dependent: an operator mixes the slices, or has no rule here.
    """
    others = {other: n for other, n in _hints(exported).items() if other != symbol}
    bounds = exported.range_constraints.get(symbol)
    require(bounds is None or bounds.lower <= 2, "the forward may take another way for small sizes")
    signature = exported.graph_signature
    changed = [s for s in signature.output_specs if s.kind.name != "USER_OUTPUT"]
    require(not changed, "the forward changes a buffer or an input")
    follower = _Follower(symbol, others)
    users = {name for name in signature.user_inputs if isinstance(name, str)}
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            follower.env[node] = follower.argument(node, node.name in users)
        elif node.op == "call_function":
            follower.env[node] = follower.call(node)
        elif node.op == "output":
            outputs = [_carried(follower.env.get(a)) for a in node.args[0] if isinstance(a, torch.fx.Node)]
        else:
            raise Dependent(f"the graph has a {node.op}")
    require(outputs, "there is no output")
    inputs = [follower.seed(_shape(value, others)) for value, _ in _inputs(exported)]
    return Independent(size, [None if carry is None else carry.dim for carry in inputs], outputs)


def _carried(value: Any) -> int:
    """The dimension along which an output carries the slices as they are."""
    require(isinstance(value, Tracked) and value.carry is not None, "an output is the same for every slice")
    carry: Carry = value.carry
    require(carry.outer == carry.inner == 1, "an output has the dimension merged with another")
    return carry.dim


class _Follower:
    """One walk: ``env`` has what each node gives."""

    def __init__(self, symbol: sympy.Symbol, others: dict[sympy.Symbol, int]) -> None:
        self.symbol, self.others = symbol, others
        self.env: dict[Any, Any] = {}

    def seed(self, shape: tuple[sympy.Expr, ...]) -> Carry | None:
        """Where an input carries the slices: along its one dimension that is the symbol."""
        dims = [i for i, n in enumerate(shape) if self.symbol in n.free_symbols]
        if not dims:
            return None
        require(len(dims) == 1 and shape[dims[0]] == self.symbol, "an input has it in several dimensions")
        return Carry(dims[0])

    def argument(self, node: Any, user: bool) -> Any:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return value
        shape = _shape(value, self.others)
        return Tracked(shape, self.seed(shape) if user else None)

    def call(self, node: Any) -> Any:
        if node.target is operator.getitem:
            return self.value(node.args[0])[node.args[1]]
        value = node.meta.get("val")
        name = str(getattr(node.target, "overloadpacket", node.target))
        if not any(isinstance(v, torch.Tensor) for v in pytree.tree_leaves(value)):
            if "assert" in name and not name.startswith(_BOOKKEEPING):
                self.check_assertion(node)
            return value
        require(isinstance(node.target, torch._ops.OpOverload), f"{name} is no operator of torch")
        arguments = self.arguments(node)
        _check_pure(name, node.target, arguments)
        results = [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]
        shapes = [_shape(v, self.others) for v in results]
        carries = self.carries(name, node.target, arguments, shapes)
        given = [self.checked(name, s, c) for s, c in zip(shapes, carries, strict=True)]
        return given[0] if isinstance(value, torch.Tensor) else _filled(value, given)

    def carries(self, name: str, target: Any, arguments: dict[str, Any], shapes: list[Any]) -> list[Carry | None]:
        call = Call(name, arguments, shapes, self.symbol)
        if not any(t.carry for t in call.tensors()) and not self.mentions([*arguments.values(), *shapes]):
            return [None] * len(shapes)
        rule = RULES.get(name)
        if rule is None and torch.Tag.pointwise in target.tags:
            rule = pointwise.elementwise
        if rule is None:
            raise Dependent(f"{name} has no rule")
        if name not in views.TAKE_SIZES:
            require(not self.mentions(list(arguments.values()), tensors=False), f"{name} computes with the size")
        try:
            found = rule(call)
        except (KeyError, IndexError, TypeError, ValueError) as error:  # an overload with other arguments
            raise Dependent(f"{name} has arguments of a kind not expected") from error
        return list(found) if isinstance(found, list) else [found] * len(shapes)

    def checked(self, name: str, shape: tuple[sympy.Expr, ...], carry: Carry | None) -> Tracked:
        """The result, if its sizes are what ``carry`` says: a rule that forgets something is found out here."""
        for i, n in enumerate(shape):
            here = carry is not None and i == carry.dim
            expected = carry.outer * carry.inner * self.symbol if carry is not None and here else None
            fits = sympy.expand(n - expected) == 0 if here else self.symbol not in n.free_symbols
            require(fits, f"{name}: the sizes of its result are others")
        require(carry is None or 0 <= carry.dim < len(shape), f"{name}: its result has fewer dimensions")
        return Tracked(shape, carry)

    def mentions(self, tree: Any, tensors: bool = True) -> bool:
        """Whether a size (``tensors``: also of a tensor) in ``tree`` has the symbol in it."""
        if isinstance(tree, Tracked):
            return tensors and self.mentions(list(tree.shape))
        if isinstance(tree, list | tuple):
            return any(self.mentions(item, tensors) for item in tree)
        return isinstance(tree, sympy.Basic) and self.symbol in tree.free_symbols

    def value(self, argument: Any) -> Any:
        """An argument of a node: tensors as Tracked, numbers that sizes were computed to as expressions."""
        if isinstance(argument, torch.fx.Node):
            return self.value(self.env[argument])
        if isinstance(argument, torch.SymInt | torch.SymFloat | torch.SymBool):
            return argument.node.expr.subs(self.others)
        if isinstance(argument, list | tuple):
            return [self.value(item) for item in argument]
        return argument

    def arguments(self, node: Any) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for i, argument in enumerate(node.target._schema.arguments):
            if i < len(node.args):
                given[argument.name] = self.value(node.args[i])
            elif argument.name in node.kwargs:
                given[argument.name] = self.value(node.kwargs[argument.name])
            else:
                given[argument.name] = argument.default_value
        return given

    def check_assertion(self, node: Any) -> None:
        conditions = [self.value(argument) for argument in node.args]
        require(not self.mentions(conditions), "the forward asserts something of the size")


def _check_pure(name: str, target: Any, arguments: dict[str, Any]) -> None:
    """Check that a call changes nothing and gives the same for the same arguments.

    Raises:
        Dependent: it changes a tensor in place or draws random numbers.
    """
    require(not target._schema.is_mutable or name == "aten.detach_", f"{name} changes a tensor in place")
    if torch.Tag.nondeterministic_seeded in target.tags or "dropout" in name:
        off = [arguments[key] == value for key, value in _RANDOM_IN_TRAINING.items() if key in arguments]
        require(any(off), f"{name} draws random numbers")


def _filled(value: Any, given: list[Tracked]) -> list[Any]:
    """``value``'s list of results with its tensors replaced in order."""
    rest = iter(given)
    return [next(rest) if isinstance(item, torch.Tensor) else item for item in value]

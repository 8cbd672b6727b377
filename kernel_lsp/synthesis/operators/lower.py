"""Walk the exported graph and lower each node, or keep it as a torch call and count it."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from kernel_lsp.naming import snake_case

from ..graph.assumptions import assumed, ones
from ..graph.build import Build, NotLowered, expr_of, opmath, shape_of
from ..graph.faults import RAISE_FAULTS, place
from ..graph.lowered import Fault, Float8, Graph
from ..graph.order import topological
from ..graph.sizes import ONE, ZERO
from ..graph.value import Input, Scalar, Shape, TorchCall, Value
from . import (
    arguments,
    complex_numbers,
    constants,
    data_dependence,
    decompose,
    filled_parts,
    float8,
    registry,
    results,
)
from .elementwise import cast
from .inputs import placeholder, ranges
from .untraceable import Untraceable

#: Operators that compute nothing on tensors; they are neither lowered nor counted.
_BOOKKEEPING = (
    "aten.sym_size",
    "aten.sym_stride",
    "aten.sym_numel",
    "aten._assert_scalar",
    "aten._assert_tensor_metadata",
    "aten.sym_constrain_range_for_size",
)


def lower(exported: ExportedProgram, left: frozenset[str] = frozenset(), runs: Float8 = "rounded") -> Graph:
    """The graph of an exported program, the operators in ``left`` kept as calls of torch.

    ``runs``: what kernels do with float8.

    Raises:
        Untraceable: a node neither lowers nor can stand as a torch call.
    """
    graph = Graph(float8=runs, ones=ones(exported))
    env: dict[Any, Any] = {}
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs if hasattr(spec.arg, "name")}
    blocks = filled_parts.in_blocks(exported)
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            env[node] = complex_numbers.parts(placeholder(node, specs.get(node.name), exported, graph))
        elif node.op == "call_function":
            graph.hints = graph.hints or _size_hints(graph, exported)
            known = blocks.get(node) if _name(node.target) not in left else None
            if known is not None:
                env[node] = _finished(known, node.meta["val"], node, graph)
            else:
                env[node] = _call(node, env, graph, left)
        elif node.op == "output":
            results.fill(node, env, exported, graph)
        else:
            raise _subgraph(node)
    leaves = [v for v in graph.output_leaves if isinstance(v, Value)]
    graph.outputs = list(dict.fromkeys([*leaves, *graph.updates.values()]))
    graph.output_spec = exported.call_spec.out_spec
    graph.ranges = ranges(exported)
    graph.assumed = assumed(exported, graph)
    _count(graph)
    return graph


#: operators with graphs of their own → what stops them, where they have no name of torch's own
_SUBGRAPHS = {
    "wrap_with_autocast": ("autocast", "forward switches it on, and which tensors it rounds depends on the device"),
}


def _subgraph(node: Any) -> Untraceable:
    """The error of a node that is a graph, which the operators that use it run: ``torch.cond``, ``torch.while_loop``."""
    name = next((_name(user.target) for user in node.users), str(node.target))
    op, detail = _SUBGRAPHS.get(name, (f"torch.{name}", "what it runs is decided by values in the tensors"))
    return Untraceable(op, detail, data_dependence.place(next(iter(node.users), node)))


def _name(target: Any) -> str:
    packet = getattr(target, "overloadpacket", None)
    return str(packet) if packet is not None else getattr(target, "__name__", str(target))


#: overloads that are another operator than their packet's others
_OF_TWO = {"aten.max.other": "aten.maximum", "aten.min.other": "aten.minimum"}


def _folded(node: Any, env: dict[Any, Any], fake: Any) -> float | None:
    """The number that an operator on constants alone gives (``torch.log(torch.tensor(100.0))``); None for all others."""
    sources = node.all_input_nodes
    if not sources or not isinstance(fake, torch.Tensor) or fake.dim() or fake.dtype.is_complex:
        return None
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return None
    if not all(isinstance(env[n], bool | int | float) and isinstance(n.meta.get("val"), torch.Tensor) for n in sources):
        return None
    args, kwargs = torch.fx.node.map_arg(
        (node.args, node.kwargs), lambda n: torch.tensor(env[n], dtype=n.meta["val"].dtype)
    )
    try:
        result = node.target(*args, **kwargs)
        return result.item() if isinstance(result, torch.Tensor) and result.numel() == 1 else None
    except Exception:
        return None


def _call(node: Any, env: dict[Any, Any], graph: Graph, left: frozenset[str]) -> Any:
    name = _name(node.target)
    fake = node.meta.get("val")
    if name.startswith(_BOOKKEEPING) or not _has_tensor(fake):
        return _scalar(fake)
    args = torch.fx.node.map_arg(node.args, lambda n: env[n])
    kwargs = torch.fx.node.map_arg(node.kwargs, lambda n: env[n])
    if node.target is operator.getitem:
        if not node.users:
            return None
        if not isinstance(args[0], list | tuple) or args[1] >= len(args[0]):
            raise Untraceable(name, "a part of a result whose parts are not known")
        return args[0][args[1]]
    if (number := _folded(node, env, fake)) is not None:
        return number
    if reason := data_dependence.why(node, (args, kwargs)):
        raise Untraceable(name, reason, data_dependence.place(node))
    name_of_lowering = _OF_TWO.get(str(node.target), name)
    by_parts = complex_numbers.occur(fake, args, kwargs)
    if by_parts:
        found = _complex(node, name_of_lowering, env, args, kwargs, graph, left)
    else:
        found = _real(node, name, registry.OPERATORS.get(name_of_lowering), env, args, kwargs, graph, left)
    if found is not None:
        return found
    if "part_of" in node.meta:
        raise NotLowered(f"{name} in its definition")
    if not isinstance(node.target, torch._ops.OpOverload):
        raise Untraceable(name, "it is no operator that can be called by itself", data_dependence.place(node))
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: constants.as_tensor(env[n], n))
    if by_parts:
        args, kwargs = pytree.tree_map(complex_numbers.whole, (args, kwargs))
    return complex_numbers.parts(_kept(node, name, args, kwargs, fake, graph))


def _real(
    node: Any,
    name: str,
    known: registry.Operator | None,
    env: dict[Any, Any],
    args: Any,
    kwargs: Any,
    graph: Graph,
    left: frozenset[str],
) -> Any:
    """The result of a node without complex tensors; None where there is no rule for it."""
    fake = node.meta.get("val")

    def finished(results: list[Any]) -> Any:
        if any(isinstance(one, complex_numbers.Complex) for one in results):
            raise NotLowered("complex results of real tensors")
        return _finished(results[0] if isinstance(fake, torch.Tensor) else results, fake, node, graph)

    if name in left:
        return None
    if known is not None:
        fakes = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
        found = _by_rule(lambda: _lowered(known, args, kwargs, fakes, fake, node, graph), name, node, graph)
        if found is not None:
            return found
    if name in registry.OPERATORS and "not_lowered" not in node.meta:  # a bug in its lowering: torch runs this node
        return None
    return _by_definition(node, env, graph, left, finished)


def _by_rule(rule: Callable[[], Any], name: str, node: Any, graph: Graph) -> Any:
    """What a lowering gives; None where it does not take the arguments, or has a bug, of which the user is told."""
    try:
        return rule()
    except NotLowered as error:
        node.meta["not_lowered"] = str(error)
    except Exception as error:
        if os.environ.get(RAISE_FAULTS):
            raise
        graph.faults.append(Fault(name, *place(error)))
    return None


def _by_definition(
    node: Any, env: dict[Any, Any], graph: Graph, left: frozenset[str], finished: Callable[[list[Any]], Any]
) -> Any:
    """The result by the operator's definition in torch; None where there is none, or a part of it has no lowering."""
    try:
        if (parts := decompose.steps(node)) is not None:
            return finished(_by_parts(*parts, env, graph, left))
    except (NotLowered, Untraceable) as error:
        node.meta.setdefault("not_lowered", str(error))
    return None


def _lowered(known: registry.Operator, args: Any, kwargs: Any, fakes: Any, fake: Any, node: Any, graph: Graph) -> Any:
    """What a lowering gives for a node, with what it takes sizes to be kept for the class to check.

    Raises:
        NotLowered: it does not take these arguments.
    """
    if known.not_one is not None:
        graph.not_one += [size for size in known.not_one(args, fake) if not size.is_number]
    float8.check(known, pytree.tree_leaves(fakes), fake, graph.float8)
    given = arguments.bound(known.lower, args, kwargs, fakes, fake)
    result = _finished(known.lower(*given.args, **given.kwargs), fake, node, graph)
    if known.equal is not None:
        pairs = [(a, b) for a, b in known.equal(given.arguments) if a != b]
        if any((a - b).subs(graph.hints) != 0 for a, b in pairs):
            raise NotLowered("sizes that differ")
        graph.equal += pairs
    if known.less is not None:
        relations = [sympy.Gt(size, least) for least, size in known.less(given.arguments)]
        if any(relation.subs(graph.hints) != sympy.true for relation in relations):
            raise NotLowered("a size that is too small, or known at run time alone")
        graph.assumed += relations
    return result


def _complex(
    node: Any, name: str, env: dict[Any, Any], args: Any, kwargs: Any, graph: Graph, left: frozenset[str]
) -> Any:
    """The result of a node with complex tensors, by their parts; None where there is no rule for it."""
    fake = node.meta.get("val")
    given = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    fakes = pytree.tree_map(complex_numbers.real_fake, given)
    of_parts = pytree.tree_map(complex_numbers.real_fake, fake)

    def real(args: Any, kwargs: Any) -> Any:
        return _lowered(registry.OPERATORS[name], args, kwargs, fakes, of_parts, node, graph)

    def of_part(part: Value, fake: Any) -> Value:
        found = _finished(part, fake, node, graph)
        assert isinstance(found, Value)
        return found

    def finished(results: list[Any]) -> Any:
        of_all = results if isinstance(fake, list | tuple) else results[0]
        return complex_numbers.finished(of_all, fake, of_part)

    if name in left:
        node.meta["not_lowered"] = "left to torch"
        return None

    def rule() -> Any:
        return complex_numbers.finished(complex_numbers.lower(name, args, kwargs, fake, real), fake, of_part)

    found = _by_rule(rule, name, node, graph)
    return _by_definition(node, env, graph, left, finished) if found is None else found


def _by_parts(parts: Any, sources: list[Any], env: dict[Any, Any], graph: Graph, left: frozenset[str]) -> Any:
    """The results of an operator's definition, ``parts``, whose placeholders are ``sources``.

    Raises:
        NotLowered: one of them has no lowering.
    """
    inner: dict[Any, Any] = {}
    remaining = iter(sources)
    before = len(graph.equal)
    try:
        for node in parts.nodes:
            if node.op == "placeholder":
                source = next(remaining)
                inner[node] = env[source] if isinstance(source, torch.fx.Node) else _scalar(source)
            elif node.op == "call_function":
                inner[node] = _call(node, inner, graph, left)
            elif node.op == "output":
                results = [inner[n] for n in node.args[0]]
                if not results or not all(isinstance(one, Value | complex_numbers.Complex) for one in results):
                    raise NotLowered("a definition that gives no tensors")
                return results
            else:
                raise NotLowered("a definition with a tensor of its own")
    except NotLowered:
        del graph.equal[before:]
        raise
    raise NotLowered("a definition without a result")


def _has_tensor(fake: Any) -> bool:
    if isinstance(fake, list | tuple):
        return any(_has_tensor(f) for f in fake)
    return isinstance(fake, torch.Tensor)


def _scalar(fake: Any) -> Any:
    """A size or a number computed from sizes: a Python number where static, else a Scalar."""
    if isinstance(fake, torch.SymInt | torch.SymFloat):
        expr = expr_of(fake)
        if expr.is_number:
            return float(expr) if isinstance(fake, torch.SymFloat) else int(expr)
        return Scalar(expr, is_float=isinstance(fake, torch.SymFloat))
    return fake


def _size_hints(graph: Graph, exported: ExportedProgram) -> dict[sympy.Symbol, int]:
    """The size symbols' values for the example inputs."""
    tensors = [leaf for leaf in pytree.tree_leaves(exported.example_inputs) if isinstance(leaf, torch.Tensor)]
    arguments = [v for v in graph.inputs if isinstance(v.op, Input) and v.op.kind == "argument"]
    hints: dict[sympy.Symbol, int] = {}
    for value, tensor in zip(arguments, tensors, strict=False):
        hints.update(
            {n: int(size) for n, size in zip(value.shape, tensor.shape, strict=True) if isinstance(n, sympy.Symbol)}
        )
    return hints


def _finished(result: Any, fake: Any, node: Any, graph: Graph) -> Any:
    """Check the lowering against what torch says of the node's result, and set the stored dtype."""
    if isinstance(result, list):
        if not isinstance(fake, list | tuple) or len(fake) < len(result):
            raise NotLowered("several results where torch has one")
        if any(user.target is operator.getitem and user.args[1] >= len(result) and user.users for user in node.users):
            raise NotLowered("results that are seldom asked for")
        return [_finished(r, f, node, graph) for r, f in zip(result, fake, strict=False)]
    if not isinstance(fake, torch.Tensor):
        raise NotLowered("one result where torch has several")
    want = _shape(fake, graph)
    if len(want) != len(result.shape):
        raise NotLowered(f"shape {result.shape} for {want}")
    for dim, (a, b) in enumerate(zip(want, result.shape, strict=True)):
        if sympy.expand(a - b) == 0:
            continue
        if sympy.expand(a - b).subs(graph.hints) != 0:
            raise NotLowered(f"shape {result.shape} for {want}")
        graph.equal.append((a, b))  # torch.export assumed it, the kernel's class has to check it
        if b in graph.ones:  # the operation has as many places as its operand: of these the first is taken
            result = Build.slice(result, dim, ZERO, ONE, ONE)
    if result.shape != want:
        result = Value(result.op, want, result.dtype, result.name, result.meaning)
    if result.dtype != fake.dtype and opmath(result.dtype) != opmath(fake.dtype):
        meaning = result.meaning
        result = cast(result, out=fake.dtype)
        result.meaning = meaning
    elif result.dtype != fake.dtype and not isinstance(result.op, Input):
        result = Value(result.op, result.shape, fake.dtype, result.name, result.meaning)
    result.node = result.node or node.meta.get("part_of", node.name)
    if result.node == node.name:  # not what dropout and the like hand on
        result.module = _completes(node)
    return result


def _shape(fake: Any, graph: Graph) -> Shape:
    """The shape that torch says a tensor has; sizes that it took to be one are one."""
    return tuple(ONE if size in graph.ones else size for size in shape_of(fake.shape))


def _completes(node: Any) -> str:
    """The name of the submodule whose result this node is, empty if it is none's."""

    def paths(n: Any) -> list[str]:
        return [path for path, _ in n.meta.get("nn_module_stack", {}).values()]

    inner = paths(node)[-1:]
    if not inner or any(inner[0] in paths(user) for user in node.users):
        return ""
    name = inner[0].rpartition(".")[2]
    return snake_case(name) if name.isidentifier() else ""


#: They address memory itself, and a kernel's results do not lie in it as eager's do.
_OF_MEMORY = frozenset(["aten.as_strided", "aten.as_strided_copy", "aten.as_strided_scatter", "aten.set_"])


def _kept(node: Any, name: str, args: Any, kwargs: Any, fake: Any, graph: Graph) -> Any:
    if name in _OF_MEMORY:
        raise Untraceable(
            name, "it addresses memory by strides, and kernels store elsewhere", data_dependence.place(node)
        )
    schema = getattr(node.target, "_schema", None)
    for argument, value in zip(schema.arguments if schema else (), args, strict=False):
        if isinstance(argument.type, torch.TensorType) and isinstance(value, bool | int | float):
            raise Untraceable(name, "it takes a constant as a tensor.")
    call = TorchCall(_python_name(node.target), args, kwargs)
    if isinstance(fake, torch.Tensor):
        return Value(call, _shape(fake, graph), fake.dtype, node=node.name)
    return [
        Value(TorchCall(call.target, (), {}, i, call), _shape(f, graph), f.dtype, node=node.name)
        if isinstance(f, torch.Tensor)
        else None
        for i, f in enumerate(fake)
    ]


def _python_name(target: Any) -> str:
    """How the operator is called from Python: torch.ops.aten.convolution.default."""
    return f"torch.ops.{target}" if hasattr(target, "overloadpacket") else f"{target.__module__}.{target.__name__}"


def _count(graph: Graph) -> None:
    """Fill ``lowered`` and ``kept`` with the operators that the outputs need."""
    seen: set[str] = set()
    for value in topological(graph.outputs):
        call = value.op.call or value.op if isinstance(value.op, TorchCall) else None
        if call is not None and call.is_view:
            continue
        if call is not None and value.node not in seen:
            seen.add(value.node)
            graph.kept.append(call.target.removeprefix("torch.ops."))
        elif value.node and value.node not in seen and not isinstance(value.op, Input):
            seen.add(value.node)
            graph.lowered.append(value.node)

"""Elements that a mask selects and that are assigned under the same mask: ``y[mask] = torch.log(z[mask])``.

How many there are depends on the values of the mask, so no launch could be made for them. The graph computes the function of all elements
instead, and ``where`` selects: ``y = where(mask, log(z), y)``. What comes of the elements that are not selected, NaN or infinity, goes nowhere.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from .graph.assumptions import environment
from .graph.build import expr_of, normalise
from .graph.sizes import ONE

_ATEN = torch.ops.aten
#: elementwise operators that torch does not tag as pointwise
_ELEMENTWISE = {
    *(_ATEN._to_copy.default, _ATEN.to.dtype, _ATEN.to.dtype_layout, _ATEN.type_as.default),
    *(_ATEN.alias.default, _ATEN.detach.default, _ATEN.contiguous.default, _ATEN.lift_fresh_copy.default),
    *(_ATEN.where.ScalarOther, _ATEN.where.ScalarSelf, _ATEN.where.Scalar, _ATEN.masked_fill.Tensor),
    *(_ATEN.zeros_like.default, _ATEN.ones_like.default, _ATEN.full_like.default, _ATEN.fill.Scalar),
    *(_ATEN.__and__.Tensor, _ATEN.__or__.Tensor, _ATEN.__xor__.Tensor),
    *(_ATEN.floor_divide.default, _ATEN.hardswish.default, _ATEN.log_sigmoid.default, _ATEN.arctan2.default),
}
#: views of dims after the selected elements → how many dims they add
_VIEWS = {_ATEN.select.int: -1, _ATEN.slice.Tensor: 0, _ATEN.unsqueeze.default: 1}
_DIVISIONS = ("aten.div", "aten.divide", "aten.floor_divide", "aten.remainder", "aten.fmod")
#: what torch.export asks of the number of selected elements
_CHECKS = (_ATEN._assert_scalar.default, _ATEN.sym_constrain_range_for_size.default)
_SIZE, _METADATA = _ATEN.sym_size.int, _ATEN._assert_tensor_metadata.default


class _Selected(NamedTuple):
    """Elements that ``mask`` selects: a tensor whose dim ``dim`` stands for all of the mask's, with ``after`` dims behind it."""

    mask: Any
    dim: int
    after: int

    @property
    def added(self) -> int:
        """Dims that all elements have more than the selected ones."""
        return int(self.mask.meta["val"].dim()) - 1


def compute_all(exported: ExportedProgram) -> None:
    """Rewrite the graph in place. Selected elements that are used in any other way stay, with all that they are computed with."""
    graph = exported.graph
    if not any(_mask(node, _ATEN.index.Tensor) for node in graph.nodes):
        return
    found, checks = _selected(graph)
    counts = _counts(found)
    whole: dict[Any, Any] = {}
    for node in list(graph.nodes):
        if node in checks:
            continue
        if node in found and node.target is _ATEN.index.Tensor:
            whole[node] = node.args[0]
        elif node in found:
            _compute_of_all(graph, node, found[node], whole)
        elif node.target is _ATEN.index_put.default and node.args[2] in found:
            _select(graph, node, found[node.args[2]], whole)
        elif any(source in whole for source in node.all_input_nodes):  # a size of a dim that is not selected
            source, dim = node.args
            node.args = whole[source], dim - found[source].dim - found[source].after - 1
    _erase(graph, {*checks, *(node for node in whole if whole[node] is not node)})
    graph.lint()
    exported.graph_module.recompile()
    _forget(exported, counts)


def _selected(graph: Graph) -> tuple[dict[Any, _Selected], set[Any]]:
    """The nodes with elements of a mask for results that can be computed of all elements; what is asked of these that always holds."""
    found: dict[Any, _Selected] = {}
    refused: set[Any] = set()
    same = _equal(graph)
    for node in graph.nodes:
        given = [source for source in node.all_input_nodes if source in found]
        if not given and (place := _mask(node, _ATEN.index.Tensor)) is not None:
            dim, mask = place
            found[node] = _Selected(same[mask], dim, node.meta["val"].dim() - dim - 1)
        elif not given or node.target in (_SIZE, _METADATA):
            continue
        elif node.target is _ATEN.index_put.default:
            if not _is_put_back(node, found, same):
                refused.update(given)
        elif (one := _followed(node, given, found)) is not None:
            found[node] = one
        else:
            refused.update(given)
    checks = {node: _checks(node, found) for node in found}
    refused.update(node for node in found if checks[node] is None)
    counts = _counts(found)
    waiting = list(refused)
    while waiting:
        node = waiting.pop()
        beside = [one for one in (*node.all_input_nodes, *node.users) if one in found and one not in refused]
        refused.update(beside)
        waiting += beside
        if not waiting:  # torch.export names the number of elements once for equal masks: where it is needed, all stay
            needed = {
                s for node in graph.nodes if node not in found or node in refused for s in _symbols(node)
            } & counts
            waiting = [node for node in found if node not in refused and _symbols(node) & needed]
            refused.update(waiting)
    left = {node: one for node, one in found.items() if node not in refused}
    return left, {check for node in left for check in checks[node] or ()}


def _counts(found: dict[Any, _Selected]) -> set[sympy.Symbol]:
    """The numbers of selected elements, as torch.export names them."""
    return set[sympy.Symbol]().union(*(_symbols(node, one.dim) for node, one in found.items()))


def _symbols(node: Any, dim: int | None = None) -> set[sympy.Symbol]:
    """The sizes that vary in the shape of a tensor, or in one dim of it."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return set()
    sizes = value.shape if dim is None else (value.shape[dim],)
    return {symbol for size in sizes for symbol in expr_of(size).free_symbols}


def _followed(node: Any, given: list[Any], found: dict[Any, _Selected]) -> _Selected | None:
    """What a node gives for selected elements; None where it cannot be computed of all elements."""
    if not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    if node.target in _VIEWS:
        return _viewed(node, found[given[0]])
    return _joined(node, [found[source] for source in given], found) if _is_elementwise(node) else None


def _mask(node: Any, target: Any) -> tuple[int, Any] | None:
    """(dim, mask) where the only index is a mask from that dim on; None of any other node."""
    if node.target is not target:
        return None
    indices = node.args[1]
    assert isinstance(indices, list | tuple)
    *before, mask = indices
    if not isinstance(mask, Node) or any(one is not None for one in before):
        return None
    fake = mask.meta["val"]
    return (len(before), mask) if fake.dtype == torch.bool and fake.dim() else None


def _equal(graph: Graph) -> dict[Any, Any]:
    """Each node → the first one that computes the same: ``x > 0`` is often written twice."""
    first: dict[str, Node] = {}
    same: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op != "call_function" or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            same[node] = node
            continue
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), same.__getitem__)
        same[node] = first.setdefault(repr((str(node.target), args, kwargs)), node)
    return same


def _is_elementwise(node: Any) -> bool:
    """Whether each element follows from those at its place, and can be computed at every place."""
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags or not (torch.Tag.pointwise in tags or node.target in _ELEMENTWISE):
        return False
    # Whole numbers divided by zero are not defined in a kernel: the mask may be there to leave them out.
    divides = str(getattr(node.target, "overloadpacket", "")) in _DIVISIONS
    return not divides or node.meta["val"].dtype.is_floating_point or not isinstance(node.args[1], Node)


def _joined(node: Any, given: list[_Selected], found: dict[Any, _Selected]) -> _Selected | None:
    """What elementwise operations make of selected elements and other tensors; None where these vary along the selected ones."""
    one = given[0]
    if any(other != one for other in given) or node.meta["val"].dim() != one.dim + one.after + 1:
        return None
    others = [source for source in node.all_input_nodes if source not in found]
    return one if all(_is_the_same_for_all(other, one) for other in others) else None


def _is_the_same_for_all(other: Any, one: _Selected) -> bool:
    """Whether a tensor has one place where ``one`` has its selected elements."""
    fake = other.meta.get("val")
    if not isinstance(fake, torch.Tensor) or fake.dim() <= one.after:
        return True
    return bool(expr_of(fake.shape[fake.dim() - 1 - one.after]) == ONE)


def _viewed(node: Any, one: _Selected) -> _Selected | None:
    added, rank = _VIEWS[node.target], one.dim + one.after + 1
    dim = normalise(node.args[1], rank + max(added, 0)) if len(node.args) > 1 else 0
    return one._replace(after=one.after + added) if dim > one.dim else None


def _is_put_back(node: Any, found: dict[Any, _Selected], same: dict[Any, Any]) -> bool:
    """Whether ``index_put`` puts selected elements where they come from, in a tensor that is whole."""
    place, value = _mask(node, _ATEN.index_put.default), node.args[2]
    if place is None or node.args[0] in found or place[1] in found or value not in found:
        return False
    dim, mask = place
    fake, new = node.meta["val"], value.meta["val"]
    if fake.dtype != new.dtype:  # torch raises: it converts single numbers alone
        return False
    if not fake.device == new.device == mask.meta["val"].device:  # where takes no mask of another device
        return False
    after = fake.dim() - dim - mask.meta["val"].dim()
    return found[value] == _Selected(same[mask], dim, after)


def _checks(node: Any, found: dict[Any, _Selected]) -> list[Any] | None:
    """The nodes that ask of selected elements, or of their number, what always holds; None where that is used in any other way."""
    checks = [user for user in node.users if user.target is _METADATA or _counted(user, found)]
    for check in checks:
        for user in check.users:
            if user.target not in _CHECKS and not _always_holds(user, found):
                return None
            checks.append(user)
    return checks


def _counted(node: Any, found: dict[Any, _Selected]) -> Any:
    """The mask of which a node gives the number of selected elements; None of any other node."""
    if not isinstance(node, Node) or node.target is not _SIZE:
        return None
    source, dim = node.args
    return found[source].mask if source in found and dim == found[source].dim else None


def _always_holds(node: Any, found: dict[Any, _Selected]) -> bool:
    """Whether it compares a number of selected elements with zero or with what the mask has, or with another number of the same mask's."""
    number, other = node.args if len(node.args) == 2 else (None, None)
    if node.target is operator.ge:
        return bool(other == 0)
    mask = _counted(number, found)
    if mask is None:
        return False
    if node.target is operator.le:
        most = expr_of(mask.meta["val"].numel())
        return isinstance(other, int) and bool(most.is_Integer and most <= other)
    return node.target is operator.eq and mask is _counted(other, found)


def _compute_of_all(graph: Graph, node: Any, one: _Selected, whole: dict[Any, Any]) -> None:
    """Let a node compute of all elements what it computes of the selected ones."""
    with graph.inserting_before(node):
        if node.target in _VIEWS:  # dims that count from the end stay the same
            end = one.dim + one.after + (2 if _VIEWS[node.target] < 0 else 1)
            dim = normalise(node.args[1], end) - end
            node.args = whole[node.args[0]], dim, *node.args[2:]
        else:
            node.args, node.kwargs = torch.fx.node.map_arg(
                (node.args, node.kwargs),
                lambda source: whole[source] if source in whole else _broadcast(graph, source, one, node),
            )
    _renew(node)
    whole[node] = node


def _select(graph: Graph, node: Any, one: _Selected, whole: dict[Any, Any]) -> None:
    """Let ``index_put`` become ``where``."""
    x, indices, source, *accumulates = node.args
    mask, value, fake = indices[-1], whole[source], node.meta["val"]
    with graph.inserting_before(node):
        for _ in range(one.after):
            mask = _call(graph, node, _ATEN.unsqueeze.default, mask, -1)
        if accumulates and accumulates[0]:
            value = _call(graph, node, _ATEN.add.Tensor, x, value)
    node.target, node.args = _ATEN.where.self, (mask, value, x)
    _renew(node)  # which notes down that sizes are equal
    node.meta["val"] = fake  # in the order in memory that the tensor has in eager


def _broadcast(graph: Graph, source: Any, one: _Selected, node: Any) -> Any:
    """``source``, which is the same for all selected elements, with a dim of size one for each of the mask's."""
    fake = source.meta.get("val")
    if isinstance(fake, torch.Tensor) and fake.dim() > one.after:
        for _ in range(one.added):
            source = _call(graph, node, _ATEN.unsqueeze.default, source, fake.dim() - 1 - one.after)
    return source


def _call(graph: Graph, like: Any, target: Any, *args: Any) -> Any:
    """A new node, of the statement that made ``like``."""
    node = graph.call_function(target, args)
    node.meta = {key: like.meta[key] for key in ("stack_trace", "nn_module_stack") if key in like.meta}
    _renew(node)
    return node


def _renew(node: Any) -> None:
    """Fill in the shape and dtype of a node's result."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda source: source.meta["val"])
    fakes = [source.meta["val"] for source in node.all_input_nodes]
    mode = next(fake.fake_mode for fake in fakes if isinstance(fake, torch._subclasses.FakeTensor))
    with mode, torch.no_grad():
        node.meta["val"] = node.target(*args, **kwargs)
    node.meta.pop("tensor_meta", None)
    node.meta.pop("unbacked_bindings", None)


def _erase(graph: Graph, dead: set[Any]) -> None:
    """Erase nodes, and what only they need."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node in dead and not node.users:
            sources = node.all_input_nodes
            graph.erase_node(node)
            dead.update(sources)


def _forget(exported: ExportedProgram, counts: set[sympy.Symbol]) -> None:
    """Leave the numbers of selected elements, and sizes that have turned out to equal others, out of the sizes that vary."""
    env = environment(exported)
    for symbol in list(exported.range_constraints):
        if symbol in counts or (env is not None and env.replace(symbol) != symbol):
            del exported.range_constraints[symbol]

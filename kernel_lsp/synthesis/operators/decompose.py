"""An operator without a lowering by torch's own definition of it in simpler operators.

All of these are lowered, or the operator as a whole stays with torch.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from ..graph.build import NotLowered

#: Whose definitions take a step for each element, or work that grows with the square of a size, or treat NaN otherwise, or
#: end with the operator itself.
_UNSUITABLE = frozenset(
    f"aten.{name}"
    for name in [
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "cummax",
        "cummin",
        "sort",
        "topk",
        "convolution",
        "native_dropout",
        "embedding_bag",
        "_embedding_bag",
        "linalg_matrix_exp",
        "unbind_copy",
        "item",
        "cat",
        "stft",
        "istft",
    ]
)
#: Interpolation that weights neighbours: torch's kernel skips those of weight 0, which may be infinite.
_WEIGHTED = re.compile(r"upsample_(linear|bilinear|trilinear|bicubic)|grid_sampler")
#: Steps beyond which torch's own kernel is the better one.
_MOST_STEPS = 100


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    from torch._decomp import decomposition_table

    return decomposition_table


def _definition(target: Any) -> Callable[..., Any] | None:
    """A function of simpler operators that computes what ``target`` does."""
    if not isinstance(target, torch._ops.OpOverload) or str(target.overloadpacket) in _UNSUITABLE:
        return None
    if _WEIGHTED.search(str(target.overloadpacket)) or "aten.fft_" in str(target):
        return None
    if torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable:
        return None
    if target in _table():
        return _table()[target]
    return target if target._can_decompose() else None


def steps(node: torch.fx.Node) -> tuple[torch.fx.Graph, list[Any]] | None:
    """(graph with a list of results, what of ``node``'s arguments its placeholders are); None where torch has no definition.

    Raises:
        NotLowered: the definition cannot be followed, or holds for some sizes alone.
    """
    definition = _definition(node.target)
    if definition is None:
        return None
    own, spec = pytree.tree_flatten((tuple(node.args), dict(node.kwargs)))
    fakes = [leaf.meta.get("val") if isinstance(leaf, torch.fx.Node) else leaf for leaf in own]
    places = [i for i, fake in enumerate(fakes) if isinstance(fake, torch.Tensor | torch.SymInt | torch.SymFloat)]
    mode = next((fake.fake_mode for fake in fakes if isinstance(fake, torch._subclasses.FakeTensor)), None)
    if mode is None:
        raise NotLowered("a definition without tensors")

    def function(*varying: Any) -> Any:
        given = list(fakes)
        for place, value in zip(places, varying, strict=True):
            given[place] = value
        args, kwargs = pytree.tree_unflatten(given, spec)
        return [leaf for leaf in pytree.tree_leaves(definition(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]

    graph = _traced(function, [fakes[i] for i in places], mode)
    if sum(inner.op == "call_function" for inner in graph.nodes) > _MOST_STEPS:
        raise NotLowered("a definition of too many steps")
    if any(inner.op == "call_function" and inner.target is node.target for inner in graph.nodes):
        raise NotLowered("a definition by itself")
    for inner in graph.nodes:
        inner.meta["part_of"] = node.meta.get("part_of", node.name)
    return graph, [own[i] for i in places]


def _traced(function: Callable[..., Any], arguments: list[Any], mode: FakeTensorMode) -> torch.fx.Graph:
    """The operators that ``function`` calls, those that change a tensor in place as those that return a new one.

    Raises:
        NotLowered: it cannot be traced.
    """
    env = mode.shape_env
    known = _assumed(env)
    replaced = dict(env.replacements) if env is not None else {}
    try:
        with mode, torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = make_fx(function)(*arguments).graph
    except Exception as error:  # torch's own functions raise whatever they like for what they do not take
        raise NotLowered(f"its definition cannot be followed: {type(error).__name__}") from error
    if _assumed(env) != known:
        if env is not None:
            del env.guards[known[0] :]
            _put_back(env, replaced)
        raise NotLowered("a definition for some sizes alone")
    _renew(graph)
    return graph


def _renew(graph: torch.fx.Graph) -> None:
    """Let what changes a tensor in place give a new one. One that a view shows, or is, stays as it is, and so is not lowered."""
    order = {node: i for i, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        new = _renewing(node)
        if new is None:
            continue
        changed = node.args[0]
        if changed.op != "call_function" or any(_is_view(one) for one in (changed, *changed.users)):
            continue
        later = [user for user in changed.users if order[user] > order[node]]
        node.target = new
        for user in later:
            user.replace_input_with(changed, node)


def _renewing(node: torch.fx.Node) -> Any:
    """The operator that returns what ``node`` makes of its first argument in place; None of any other."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable or not schema.name.endswith("_"):
        return None
    if [argument.is_write for argument in schema.arguments].count(True) != 1 or not schema.arguments[0].is_write:
        return None
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::")[:-1], None)
    return getattr(packet, schema.overload_name or "default", None)


def _is_view(node: torch.fx.Node) -> bool:
    """Whether its result is part of an argument."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable:
        return False
    return any(result.alias_info is not None for result in schema.returns)


def _put_back(env: Any, replaced: dict[Any, Any]) -> None:
    """Let sizes vary again that a definition was followed for one value of."""
    env.replacements.clear()
    env.replacements.update(replaced)
    env._update_version_counter()
    if hasattr(env, "_replacements_version_counter"):  # torch 2.13 keeps expressions by it
        env._replacements_version_counter += 1


def _assumed(env: Any) -> tuple[int, int, int]:
    """How much is assumed of the sizes: what holds for the example alone would be one more."""
    if env is None:
        return 0, 0, 0
    return len(env.guards), len(env.replacements), sum(map(len, env.deferred_runtime_asserts.values()))

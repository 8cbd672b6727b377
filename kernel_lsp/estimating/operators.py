"""What eager runs for a module: its operators below autograd, each with launches, bytes and operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from kernel_lsp.specimen import faking

from . import launches
from .convolutions import Convolution, convolution
from .recurrent import CELLS, LAYERS, Recurrent, cell, layers

_aten = torch.ops.aten
_ATTENTION = _aten.scaled_dot_product_attention.default


@dataclass
class Operator:
    """One operator that eager runs: ``name`` as "aten.mul", ``read`` and ``written`` bytes, ``operations`` of its products.

    ``rows``: of one that gives each row a block of threads, how many there are. ``dtype``: of what it multiplies, or gives.
    ``node``: the exported node that it comes from, and ``target`` what that calls: "aten.gelu.default".
    """

    name: str
    launches: int
    read: int
    written: int
    operations: int = 0
    rows: int | None = None
    dtype: torch.dtype = torch.float32
    node: str = ""
    target: str = ""
    convolution: Convolution | None = None
    recurrent: Recurrent | None = None

    @property
    def bytes(self) -> int:
        """Bytes that it reads and writes."""
        return self.read + self.written


@dataclass
class Eager:
    """The operators of one call in their order; views are not among them."""

    operators: list[Operator] = field(default_factory=list)

    @property
    def launches(self) -> int:
        """Launches of all operators."""
        return sum(one.launches for one in self.operators)

    @property
    def bytes(self) -> int:
        """Bytes that all operators read and write."""
        return sum(one.bytes for one in self.operators)


def eager(exported: ExportedProgram) -> Eager:
    """The operators that torch's kernels run on a GPU for the example inputs.

    Raises:
        Exception: what torch raises where tensors without elements do not do.
    """
    found = Eager()
    fake = faking.mode()
    runner = _Runner(exported, found)
    with torch.no_grad(), fake, runner.recorder:
        runner.run(*_inputs(exported, fake))
    return found


def _inputs(exported: ExportedProgram, fake: Any) -> list[Any]:
    """What the graph's placeholders stand for, as fake tensors of the example's sizes."""
    given = iter(pytree.tree_leaves(exported.example_inputs))
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    result: list[Any] = []
    for spec, node in zip(exported.graph_signature.input_specs, placeholders, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            value = next(given)
        elif spec.target in exported.state_dict:
            value = exported.state_dict[spec.target]
        elif spec.target in exported.constants:
            value = exported.constants[spec.target]
        else:  # a tensor in an attribute that forward assigns (``synthesis.attributes``)
            value = node.meta["val"]
        result.append(_fake(value, fake) if isinstance(value, torch.Tensor) else value)
    return result


def _fake(tensor: torch.Tensor, fake: Any) -> torch.Tensor:
    """Of the same shape and strides, in the mode ``fake``: the module's own may be of another one."""
    shape, stride = (
        [n.node.hint if isinstance(n, torch.SymInt) else n for n in of] for of in (tensor.shape, tensor.stride())
    )
    with fake:
        made = torch.empty_strided(shape, stride, dtype=tensor.dtype)
    return made


class _Runner(torch.fx.Interpreter):
    """Runs the exported graph; what torch would take apart into other operators than on a GPU is counted here instead."""

    def __init__(self, exported: ExportedProgram, found: Eager) -> None:
        super().__init__(exported.graph_module)
        self.found = found
        self.recorder = _Recorder(found)

    def run_node(self, node: torch.fx.Node) -> Any:
        self.recorder.node, self.recorder.target = node.name, str(node.target)
        return super().run_node(node)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target in LAYERS or target in CELLS:
            return self._recurrent(target, args)
        if target is _ATTENTION:
            return self._attention(args, kwargs)
        return super().call_function(target, args, kwargs)

    def _recurrent(self, target: Any, args: Any) -> Any:
        with self.recorder.silent():
            seen, result = layers(target, args) if target in LAYERS else cell(target, args)
        self._add(target, args, result, seen.launches, seen.operations, recurrent=seen)
        return result

    def _attention(self, args: Any, kwargs: Any) -> Any:
        """One kernel, as flash and memory-efficient attention are."""
        query, key, value = args[:3]
        with self.recorder.silent():
            shape = (*query.shape[:-1], value.shape[-1])
            # What comes after it may rely on the order in memory, which is that of the queries.
            result = torch.empty_like(query) if query.shape == shape else query.new_empty(shape)
        scores = query.shape[:-1].numel() * key.shape[-2]
        share = 0.5 if kwargs.get("is_causal") or (len(args) > 5 and args[5]) else 1.0
        operations = int(2 * scores * (query.shape[-1] + value.shape[-1]) * share)
        self._add(_ATTENTION, (args, kwargs), result, 1, operations)
        return result

    def _add(self, target: Any, given: Any, result: Any, count: int, operations: int, **more: Any) -> None:
        tensors = _tensors(given)
        self.found.operators.append(
            Operator(
                _name(target),
                count,
                sum(map(_bytes, tensors)),
                sum(map(_bytes, _tensors(result))),
                operations,
                dtype=tensors[0].dtype,
                node=self.recorder.node,
                target=str(target),
                **more,
            )
        )


class _Recorder(TorchDispatchMode):
    """Notes each operator that reaches a backend."""

    def __init__(self, found: Eager) -> None:
        super().__init__()
        self.found = found
        self.node = self.target = ""
        self._silent = 0

    def silent(self) -> _Silence:
        return _Silence(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._silent and not launches.is_free(func):
            self.found.operators.append(self._operator(func, args, kwargs, result))
        return result

    def _operator(self, func: Any, args: Any, kwargs: Any, result: Any) -> Operator:
        packet = func.overloadpacket
        given, gives = _tensors((args, kwargs)), _tensors(result)
        read, written = sum(map(_bytes, given)), sum(map(_bytes, gives))
        if launches.only_writes(func) and given:  # what it overwrites is not read
            read -= _bytes(given[0])
        if launches.picks(func) and given:  # of a table only what is asked for
            read -= max(_bytes(given[0]) - written, 0)
        operations = int(flop_registry[packet](*args, **kwargs, out_val=result)) if packet in flop_registry else 0
        cost = launches.of(func, args)
        seen = convolution(args, result) if packet is _aten.convolution else None
        dtype = given[0].dtype if given else gives[0].dtype if gives else torch.float32
        if seen is not None and seen.bias and not seen.depthwise:  # the bias is added by a kernel of its own
            cost = launches.Cost(cost.launches + 1)
            read, written = read + written, 2 * written
        return Operator(
            _name(func),
            cost.launches,
            int(read * cost.reads),
            int(written * cost.writes),
            operations,
            cost.rows(args),
            dtype,
            self.node,
            self.target,
            seen,
        )


class _Silence:
    """A context in which a recorder notes nothing."""

    def __init__(self, recorder: _Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorder._silent += 1

    def __exit__(self, *_: object) -> None:
        self.recorder._silent -= 1


def _name(func: Any) -> str:
    return str(func.overloadpacket).replace("::", ".")


def _tensors(tree: Any) -> list[torch.Tensor]:
    """Each tensor once: one kernel that is given it twice finds it in the cache."""
    found = {id(leaf): leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)}
    return list(found.values())


def _bytes(tensor: torch.Tensor) -> int:
    """Of the elements that are there: those of an expanded dimension lie in one place."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= int(size) if stride or not size else 1
    return count * tensor.element_size()

"""Whether a host plan can be replayed from a CUDA graph, and whether that may be faster than its launches one by one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch

from ..graph.lowered import Graph
from ..graph.value import Input, TorchCall, Value, View, input_of, numel
from ..kernel.execution_plan import Hints, hint
from .choices import Chosen
from .cost import cost
from .plan import CallTorch, CheckIndices, HostPlan, Launch, TakeView
from .target import Target

#: seconds of the host, on the machine with an H100 of docs/performance.md: a launch from Python with its allocation, an
#: operator of torch, a replay with its checks; a copy of an input or of a result; one kernel inside a graph
LAUNCH, OPERATOR, REPLAY, COPY, NODE = 20e-6, 12e-6, 15e-6, 5e-6, 1e-6
#: of a kernel for what float16 does not hold, which nearly always ends at once (docs/performance.md)
_ENDS = 3e-6
#: By how much a host may be slower: a launch took 22 and 43 µs on two machines with an H100. Seconds for which a GPU that is busy hides that.
_SLOWER, _HIDDEN = 2.0, 100e-6
#: what a graph cannot have: random numbers, a wait for values or for sizes
_REFUSED = (
    torch.Tag.nondeterministic_seeded,
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
)


def replayable(plan: HostPlan, graph: Graph) -> bool:
    """Whether a graph of the plan gives what its launches give.

    It does not where an operator of torch waits for the GPU, draws random numbers or writes to what it is given, where
    indices are checked on the host, where attributes change, where nothing is given to forward, and where results share memory with each other
    or with something else: the caller's copies would not. Buffers change where they lie.
    """
    if graph.assigned or any(isinstance(operation, CheckIndices) for operation in plan.operations):
        return False
    if any(input_of(value).kind == "attribute" for value in graph.updates):
        return False
    if not all(capturable(one) for one in plan.operations if isinstance(one, CallTorch)):
        return False
    if not any(input_of(value).kind == "argument" for value in plan.inputs):
        return False
    views = {operation.value for operation in plan.operations if isinstance(operation, TakeView)}
    memory = [_memory(value, views) for value in graph.output_leaves if isinstance(value, Value)]
    if any(value in memory for value in graph.updates.values()):  # the result may lie in the buffer
        return False
    return None not in memory and len(set(memory)) == len(memory)


def _memory(value: Value, views: set[Value]) -> Value | None:
    """The value in whose memory a result lies; None where that is an input's, or where a copy would have other strides."""
    while value in views:
        assert isinstance(value.op, View)
        if value.op.name == "expand":
            return None
        value = value.op.operand
    return None if isinstance(value.op, Input) else value


def capturable(operation: CallTorch) -> bool:
    """Whether an operator of torch gives the same from the same, writes to nothing that it is given and waits for nothing."""
    op = operation.values[0].op
    assert isinstance(op, TorchCall)
    if op.is_view:
        return True
    target = (op.call or op).target  # torch.ops.aten.conv2d.default
    namespace, name, overload = target.removeprefix("torch.ops.").split(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    return not operator._schema.is_mutable and not any(tag in operator.tags for tag in _REFUSED)


@dataclass(frozen=True)
class Estimate:
    """Seconds of a call: of the host and of the GPU where kernels are launched one by one, and of a replay with its copies."""

    host: float
    gpu: float
    replay: float

    @property
    def worthwhile(self) -> bool:
        """Whether direct launches may take longer than a replay; which of them does is measured."""
        return self.replay < max(self.host, _SLOWER * self.host - _HIDDEN, self.gpu)

    @property
    def much_faster(self) -> bool:
        """Whether direct launches take longer even on a host that is twice as fast."""
        return self.replay < self.host / _SLOWER


def estimate(
    plan: HostPlan, graph: Graph, chosen: Chosen, target: Target, hints: Hints, packed: Collection[int] = ()
) -> Estimate:
    """What a call takes, by the cost model.

    A call takes what the host needs or what the GPU needs, whichever is more. What torch's operators take on the GPU is
    not known here, and counted as nothing. ``packed``: the places of operations that most calls go without.
    """
    operations = [one for place, one in enumerate(plan.operations) if place not in packed]
    launches = [one for one in operations if isinstance(one, Launch)]
    operators = sum(isinstance(one, CallTorch) and not one.is_view for one in operations)
    kernels = sum(
        _ENDS if one.kernel.exact else cost(one.kernel, chosen[one.kernel], target, hints).seconds for one in launches
    )
    gpu = kernels + NODE * (len(launches) + operators)
    copied = [value for value in plan.inputs if input_of(value).kind == "argument"]
    copied += [value for value in graph.output_leaves if isinstance(value, Value)]
    copies = sum(2 * hint(numel(value.shape), hints) * value.dtype.itemsize for value in copied) / target.bandwidth
    replay = max(REPLAY + COPY * len(copied), gpu + copies + NODE * len(copied))
    return Estimate(LAUNCH * len(launches) + OPERATOR * operators, gpu, replay)

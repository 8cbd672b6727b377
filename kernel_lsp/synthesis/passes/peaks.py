"""The largest magnitude of a rounded value, which the kernel that rounds it also computes."""

from __future__ import annotations

import torch

from ..graph.names import variable_name
from ..graph.sizes import ONE
from ..graph.value import Concat, Peak, Pointwise, Value, operands


def peak_of(rounded: Value) -> Value:
    """The peak of what ``rounded`` rounds: a conversion to half precision, or the planes of one tensor."""
    # The last piece is the tensor itself, rounded.
    source = _converted(rounded.op.operands[-1] if isinstance(rounded.op, Concat) else rounded)
    return Value(Peak(source, rounded), (ONE,), torch.float32, f"{variable_name(rounded)}_peak")


def _converted(value: Value) -> Value:
    assert isinstance(value.op, Pointwise) and value.op.function.startswith("to_")
    (operand,) = operands(value)
    return operand

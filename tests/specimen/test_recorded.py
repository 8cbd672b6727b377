"""Recorded calls as example inputs: after the user's own, with their shapes, dtypes and strides."""

from __future__ import annotations

import types

import pytest
import torch

from kernel_lsp import errors
from kernel_lsp.specimen import examples, recorded


class Scaled(torch.nn.Module):
    def __init__(self, dim: int, *, eps: float = 0.0) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x, pair, *, scale=1.0):
        return x + pair[0] * scale


INIT = {"args": [{"value": 16}], "kwargs": {"eps": {"value": 0.5}}}
X = {"tensor": "float16[4, 16]", "order": "transposed", "stride": [1, 4]}
PAIR = {"tuple": [{"tensor": "int64[16]", "below": 7}, {"value": None}]}
TABLE = {"recorded": {"from": "train.py", "init": INIT, "args": [X, PAIR], "kwargs": {"scale": {"value": 2.0}}}}


def resolve(module: types.ModuleType, table) -> examples.Example:
    return examples.resolve(module, Scaled, "scaled.py", "Scaled", table)


def test_a_class_without_functions_gets_what_was_recorded() -> None:
    found = resolve(types.ModuleType("scaled"), TABLE)
    assert (found.init_args, found.init_kwargs, found.inputs_from) == ((16,), {"eps": 0.5}, "recorded from train.py")
    x, (integers, nothing) = found.args
    assert x.dtype == torch.float16 and x.shape == (4, 16) and x.stride() == (1, 4) and x.std() > 0
    assert integers.dtype == torch.int64 and integers.min() >= 0 and integers.max() < 7 and nothing is None
    assert found.kwargs == {"scale": 2.0}


def test_the_user_s_own_come_first() -> None:
    own = types.ModuleType("scaled")
    own.get_inputs_Scaled = lambda: [torch.ones(2), (torch.ones(2), None)]
    found = resolve(own, TABLE)
    assert found.inputs_from != "recorded from train.py" and found.args[0].shape == (2,)
    assert found.init_args == (16,)  # it cannot be constructed without
    of_another = types.ModuleType("scaled")
    of_another.get_inputs = own.get_inputs_Scaled
    of_another.get_init_inputs = lambda: [3]
    found = resolve(of_another, TABLE)
    assert (found.inputs_from, found.init_args) == ("get_inputs()", (3,))
    found = resolve(of_another, {**TABLE, "first": True})
    assert (found.inputs_from, found.init_args) == ("recorded from train.py", (16,))
    from_project = resolve(types.ModuleType("scaled"), {"init": [3], "args": ["float32[3]", ["float32[3]"]], **TABLE})
    assert (from_project.inputs_from, from_project.init_args) == ("pyproject.toml", (3,))
    with pytest.raises(errors.NoExampleInputs):
        resolve(types.ModuleType("scaled"), None)


def test_memory_orders_are_made_again() -> None:
    expanded = recorded.tensor({"tensor": "float32[5, 3]", "stride": [0, 1]})
    assert expanded.stride() == (0, 1) and torch.equal(expanded[0], expanded[4])
    last = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    made = recorded.tensor({"tensor": "bfloat16[2, 3, 4, 5]", "stride": list(last.stride())})
    assert made.is_contiguous(memory_format=torch.channels_last) and made.dtype == torch.bfloat16
    assert recorded.tensor({"tensor": "bool[]"}).dtype == torch.bool
    with pytest.raises(ValueError, match=r"shop\.Config"):
        recorded.value({"other": "shop.Config"})

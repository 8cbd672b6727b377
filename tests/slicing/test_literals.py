"""Example inputs and constructor arguments as Python."""

from __future__ import annotations

import enum
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.slicing.literals import example, literal

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(PLAIN)
def test_a_literal_gives_an_equal_value_of_the_same_type(value: Any) -> None:
    text = literal(value)
    assert text is not None
    again = eval(text, {"torch": torch})
    assert repr(again) == repr(value) and type(again) is type(value)


@pytest.mark.parametrize("value", [torch.float16, torch.device("cpu"), torch.Size([2, 3]), slice(1, None), range(3),
                                   {1, 2}, frozenset(), ..., b"a"], ids=str)  # fmt: skip
def test_more_values(value: Any) -> None:
    text = literal(value)
    assert text is not None
    assert eval(text, {"torch": torch}) == value


@pytest.mark.parametrize("value", [object(), torch.nn.ReLU(), [1, torch.relu], enum.IntEnum("E", "A").A, "x" * 5000, torch.ones(1)])  # fmt: skip
def test_what_has_no_literal(value: Any) -> None:
    assert literal(value) is None


TENSORS = {
    "torch.randn(2, 3)": torch.randn(2, 3) * 5,
    "torch.randn(2, 3, dtype=torch.bfloat16)": torch.randn(2, 3).bfloat16() * 5,
    "torch.randn(2, 3).to(torch.float8_e4m3fn)": torch.randn(2, 3).to(torch.float8_e4m3fn),
    "torch.rand(50)": torch.rand(50),
    "torch.ones(2, 3)": torch.ones(2, 3),
    "torch.zeros(4, dtype=torch.float16)": torch.zeros(4).half(),
    "(torch.rand(2, 2) > 0.5).to(torch.float32)": torch.eye(2),
    "torch.randint(0, 8, (2, 2))": torch.tensor([[7, 2], [3, 4]]),
    "torch.randint(-3, 5, (2,), dtype=torch.int32)": torch.tensor([-3, 4]).int(),
    "torch.randint(0, 4, (2,)).to(torch.uint16)": torch.tensor([2, 3]).to(torch.uint16),
    "torch.arange(5)": torch.arange(5),
    "torch.rand(3, 2) > 0.5": torch.tensor([[True, False]] * 3),
    "(torch.rand(3, 2) > 0.5).t()": torch.tensor([[True, False], [True, True], [False, True]]).t(),
    "torch.ones(3, 3, dtype=torch.bool).tril()": torch.ones(3, 3).tril().bool(),
    "torch.ones(1, 3, 3, dtype=torch.bool).triu(1)": torch.ones(1, 3, 3).triu(1).bool(),
    "torch.ones(3, 3, dtype=torch.bool).tril(-1)": torch.ones(3, 3).tril(-1).bool(),
    "torch.tensor(2.5, dtype=torch.float32)": torch.tensor(2.5),
    "torch.tensor(3, dtype=torch.int64)": torch.tensor(3),
    "torch.tensor(True)": torch.tensor(True),
    "torch.randn(3, 2).t()": torch.randn(3, 2).t() * 5,
    "torch.randn(4, 2, 3).permute(1, 2, 0)": torch.randn(4, 2, 3).permute(1, 2, 0) * 5,
    "torch.randn(1, 3).expand(4, 3)": (torch.randn(1, 3) * 5).expand(4, 3),
    "torch.zeros(2, 0)": torch.empty(2, 0),
    "torch.randn(2, dtype=torch.complex64)": torch.randn(2, dtype=torch.complex64),
    'torch.zeros(2, 2).masked_fill(torch.rand(2, 2) > 0.5, float("-inf"))': torch.ones(2, 2).log() + torch.tensor([[0, float("-inf")]] * 2),
}  # fmt: skip


@pytest.mark.parametrize(("text", "tensor"), TENSORS.items(), ids=list(TENSORS))
def test_a_tensor_by_shape_dtype_and_kind(text: str, tensor: torch.Tensor) -> None:
    assert example(tensor) == text
    made = eval(text)
    assert (made.shape, made.dtype) == (tensor.shape, tensor.dtype)
    if tensor.numel() > 1 and tensor.is_contiguous() is False:
        assert made.stride() == tensor.stride()


def test_structures_of_tensors() -> None:
    given_ = ([torch.ones(1), None], {"a": (torch.zeros(2), 3)})
    assert example(given_) == "([torch.ones(1), None], {'a': (torch.zeros(2), 3)})"
    assert example([object()]) is None
    assert example(torch.ones(2, 2).to_sparse()) is None

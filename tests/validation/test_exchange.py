"""Memory that the referee lends: inputs between guards, room for results, and a trial that misuses it.

On the host, where a memory file takes the place of a GPU's memory.
"""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.validation import exchange
from kernel_lsp.validation.guards import GUARD

HOST = torch.device("cpu")


def lend(tree, expected=(), names=()):
    loan = exchange.Loan(tree, list(expected), list(names), HOST)
    return loan, exchange.Opened(loan.message(), os.dup(loan.block.file), HOST)


@st.composite
def tensors(draw):
    """Tensors of many dtypes, shapes and strides: transposed, with gaps, expanded, empty, 0-dimensional."""
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bool, torch.int64, torch.complex64]))
    shape = draw(st.lists(st.integers(0, 5), max_size=3))
    tensor = torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 2, shape).to(dtype)
    how = draw(st.sampled_from(["as it is", "transposed", "sliced", "expanded"]))
    if how == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(0, 1)
    if how == "sliced" and tensor.dim() >= 1:
        return tensor[..., ::2]
    if how == "expanded":
        return tensor.expand(3, *shape)
    return tensor


@settings(deadline=None)
@given(st.lists(tensors(), max_size=3))
def test_tensors_arrive_with_their_values_and_strides(sent):
    loan, opened = lend({"all": [*sent], "number": 2.5})
    try:
        got = opened.tree["all"]
        assert opened.tree["number"] == 2.5
        for mine, theirs in zip(sent, got, strict=True):
            assert theirs.dtype == mine.dtype and theirs.shape == mine.shape
            assert mine.numel() < 2 or theirs.stride() == mine.stride()
            assert torch.equal(mine, theirs)
        assert loan.mutated() == [] and loan.damaged() == []
    finally:
        del got
        opened.close()
        loan.free()


def test_results_come_back_where_they_fit_and_as_a_claim_where_they_do_not():
    like = [torch.empty(3, 4), torch.empty(2)]
    loan, opened = lend([torch.ones(2)], like)
    said = opened.put((torch.arange(12.0).reshape(4, 3).t(), torch.zeros(5)))
    first, second = loan.results(said["described"], said["metas"])
    assert torch.equal(first, torch.arange(12.0).reshape(4, 3).t())
    assert second.is_meta and list(second.shape) == [5]  # no values: nothing of it was copied
    assert said["metas"][0]["stride"] == [1, 3]
    opened.close()
    loan.free()


def test_room_for_results_holds_nothing_of_what_was_there():
    loan, opened = lend([torch.ones(2)], [torch.empty(4)])
    lie = [{"dtype": "float32", "shape": [4], "stride": [1], "device": "cpu", "here": True}]
    (never_written,) = loan.results({"list": [{"tensor": 0}]}, lie)
    assert never_written.isnan().all()
    opened.close()
    loan.free()


@pytest.mark.parametrize(
    "lie",
    [
        [{"dtype": "storage", "shape": [4], "here": True}],
        [{"dtype": "float32", "shape": [-4], "here": True}],
        [{"dtype": "float32", "here": True}],
    ],
)
def test_a_malformed_description_is_an_error(lie):
    loan, opened = lend([torch.ones(2)], [torch.empty(4)])
    with pytest.raises((ValueError, KeyError)):
        loan.results({"list": [{"tensor": 0}]}, lie)
    opened.close()
    loan.free()


def test_a_changed_input_and_writes_past_its_ends_are_seen():
    loan, opened = lend([torch.zeros(8), torch.zeros(8)], [], ["input x", "input y"])
    x, y = opened.tree
    y[3] = 1
    assert loan.mutated() == [1] and loan.damaged() == []
    end = GUARD + 8 * 4  # of x, in the block
    opened.lent.data[end + 7] = 0
    assert loan.damaged() == ["it writes 8 bytes or more past the end of input x"]
    opened.lent.data[GUARD - 2] = 0
    opened.lent.data[end : end + GUARD] = 0x7F
    assert loan.damaged() == ["it writes 2 bytes or more before the start of input x"]
    del x, y
    opened.close()
    loan.free()


@pytest.mark.parametrize("inference", [False, True])
def test_tensors_that_are_kept_get_memory_of_their_own_and_share_it_as_before(inference):
    """As those of a module that remembers its input; on a GPU the lent memory is unmapped."""
    first, second = torch.randn(3, 4), torch.arange(5)
    loan, opened = lend([first, second])
    with torch.inference_mode(inference):
        kept, view, other = opened.tree[0], opened.tree[0][1:, ::2], opened.tree[1]
    before = kept.data_ptr()
    opened.close()
    loan.free()
    assert kept.data_ptr() != before
    assert torch.equal(kept, first) and torch.equal(view, first[1:, ::2]) and torch.equal(other, second)
    with torch.inference_mode(inference):
        kept[1, 2] = 7.0
    assert view[0, 1] == 7.0


def test_nothing_is_copied_where_nothing_is_kept(monkeypatch):
    loan, opened = lend([torch.randn(3, 4)])
    monkeypatch.setattr(torch.Tensor, "clone", lambda *_, **__: pytest.fail("copied"))
    opened.close()
    loan.free()

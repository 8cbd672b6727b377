"""Views that depend on sizes: the class takes those at which torch gives the same dims, or as many elements."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.assumptions import assumed
from kernel_lsp.synthesis.graph.verify import verify
from kernel_lsp.synthesis.operators import lower

COUNT = 9


def step(x):
    """One less than ``x`` has."""
    return x[:, 1:] - x[:, :-1]


@pytest.mark.parametrize(
    ("cut", "conditions"),
    [
        (lambda x: x[:, :2], 1),
        (lambda x: x[:, -2:], 1),
        (lambda x: step(x)[:, :1], 1),
        (lambda x: step(x)[:, -1:], 1),
        (lambda x: x[:, :1], 0),
        (lambda x: x[:, -1:], 0),
        (lambda x: x[:, 1:], 0),
        (lambda x: x[:, ::2], 0),
        (step, 0),
    ],
)
def test_a_slice_says_how_many_elements_there_have_to_be(cut, conditions):
    class Cut(torch.nn.Module):
        def forward(self, x):
            return cut(x) * 2

    exported = capture(Cut(), (torch.randn(5, COUNT),))
    graph = lower(exported)
    found = assumed(exported, graph)
    assert len(found) == conditions
    symbol = graph.inputs[0].shape[1]
    for size in range(1, COUNT) if conditions else ():
        same = cut(torch.randn(5, size)).shape == cut(torch.randn(5, COUNT)).shape
        assert all(bool(relation.subs(symbol, size)) for relation in found) == same, size


@pytest.mark.parametrize(
    ("squeezed", "dims"),
    [
        (lambda x: x.squeeze(1), []),
        (lambda x: x.squeeze(-1), [2]),
        (lambda x: x.squeeze((0, 1)), [0]),
        (lambda x: x.squeeze(), [0, 2]),
        (lambda x: x[:, 0].squeeze(1), [2]),
    ],
)
def test_a_squeeze_takes_the_dims_that_it_names_to_stay_and_no_others(squeezed, dims):
    class Squeezed(torch.nn.Module):
        def forward(self, x):
            return squeezed(x) * 2

    graph = lower(capture(Squeezed(), (torch.randn(5, 1, COUNT),)))
    assert graph.not_one == [graph.inputs[0].shape[d] for d in dims]


def test_a_quotient_that_was_one_is_one_where_it_broadcasts():
    class Halved(torch.nn.Module):
        def forward(self, x, y):
            return torch.tensor_split(x, 2, 0)[-1] + y

    graph = lower(capture(Halved(), (torch.randn(3, 1), torch.randn(6, COUNT))))
    verify(graph)
    x, y = graph.inputs
    assert graph.outputs[0].shape == y.shape
    assert [size.subs(x.shape[0], 3) for pair in graph.equal for size in pair] == [1, 1]


@pytest.mark.parametrize("least", [1, 3])
def test_a_split_into_parts_of_a_clamped_size_takes_sizes_of_as_many_parts(least):
    def parts(x):
        return torch.split(x, max(least, x.shape[1] // 8), 1)

    class Last(torch.nn.Module):
        def forward(self, x):
            return parts(x)[-1] * 2

    exported = capture(Last(), (torch.randn(5, 4 * COUNT),))
    graph = lower(exported)
    symbol, found = graph.inputs[0].shape[1], assumed(exported, graph)
    for size in range(2, 8 * COUNT):
        if all(bool(relation.subs(symbol, size)) for relation in found):
            assert len(parts(torch.randn(5, size))) == len(parts(torch.randn(5, 4 * COUNT))), size

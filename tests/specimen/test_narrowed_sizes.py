"""Sizes that a graph fixes, and of which forward takes others."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp import class_schema
from kernel_lsp.specimen import faking, narrowed_sizes
from kernel_lsp.specimen.examples import Example


class Mixes(torch.nn.Module):
    """``how`` is called with what forward is given: [8, 6] and [8]."""

    def __init__(self, how):
        super().__init__()
        self.how, self.linear = how, torch.nn.Linear(6, 6)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, y):
        self.calls += 1
        return self.linear(self.how(x, y))


def narrowed(how, *dynamic):
    module, given = Mixes(how), (torch.randn(8, 6), torch.randn(8))
    specs = [
        class_schema.TensorSpec(name, [*one.shape], "float32", dynamic=[*symbols])
        for name, one, symbols in zip("xy", given, dynamic, strict=True)
    ]
    narrowed_sizes.note(specs, module, Example((), {}, given, {}, ""), None)
    assert module.calls == 0
    return [spec.narrowed for spec in specs]


@pytest.mark.parametrize(
    ("how", "dynamic", "expected"),
    [
        (lambda x, y: x + y[:, None], ((None, None), (None,)), [[0], [0]]),  # not 6, which the module's layer asks for
        (lambda x, y: x + y[:, None], (("b", None), ("b",)), [[], []]),
        (lambda x, y: x * y[:, None], ((None, None), ("b",)), [[0], []]),  # the free one has to be as long
        (lambda x, y: x + y[3] + torch.ones(8, 1), ((None, None), (None,)), [[], [0]]),
        (lambda x, y: x[y == y], ((None, None), (None,)), [[0], [0]]),  # no shape without values
    ],
)
def test_sizes_are_narrowed_that_forward_takes_otherwise(how, dynamic, expected):
    assert narrowed(how, *dynamic) == expected


def test_a_module_without_elements_is_called_as_well():
    mode = faking.mode()
    with mode:
        module, given = torch.nn.Linear(6, 6), torch.empty(1, 6)
    spec = class_schema.TensorSpec("x", [1, 6], "float32", dynamic=[None, None])
    narrowed_sizes.note([spec], module, Example((), {}, (given,), {}, ""), mode)
    assert spec.narrowed == [0]

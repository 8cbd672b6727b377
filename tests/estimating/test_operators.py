"""What eager is found to launch, move and multiply."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.estimating.asking import run

ROWS, WIDTH = 4096, 2048
WHOLE = ROWS * WIDTH * 4  # bytes of the input


class Chain(nn.Module):
    def forward(self, x):
        return torch.sigmoid(torch.relu(x * 2.0) + 1.0) - 3.0


class Shapes(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1).reshape(WIDTH, 2, -1)[:, 0].unsqueeze(0).expand(3, -1, -1) + 1.0


class Linear(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 512, bias=bias)

    def forward(self, x):
        return self.linear(x)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x)


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100_000, 256)

    def forward(self, tokens):
        return self.table(tokens)


class Attention(nn.Module):
    def forward(self, q):
        return functional.scaled_dot_product_attention(q, q + 1.0, q + 2.0)


class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1.0
        y.mul_(2.0)
        return y


def test_each_operator_of_a_chain_is_a_launch_that_reads_and_writes_all() -> None:
    found = run(Chain, (ROWS, WIDTH))
    assert [one.name for one in found.operators] == ["aten.mul", "aten.relu", "aten.add", "aten.sigmoid", "aten.sub"]
    assert found.launches == 5
    assert all((one.read, one.written, one.operations) == (WHOLE, WHOLE, 0) for one in found.operators)
    assert found.bytes == 10 * WHOLE


def test_views_launch_nothing_and_an_expanded_one_is_read_once() -> None:
    found = run(Shapes, (ROWS, WIDTH))
    (add,) = [one for one in found.operators if one.name == "aten.add"]
    assert (add.read, add.written) == (WHOLE // 2, 3 * WHOLE // 2)
    assert found.launches <= 2, "the addition, and a copy where reshape takes one"


def test_what_is_changed_in_place_is_read_and_written() -> None:
    found = run(InPlace, (ROWS, WIDTH))
    assert [(one.read, one.written) for one in found.operators] == [(WHOLE, WHOLE)] * 2


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_one_product(bias: bool) -> None:
    found = run(lambda: Linear(bias), (ROWS, WIDTH))
    (one,) = found.operators
    weight = (WIDTH * 512 + 512 * bias) * 4
    assert (one.launches, one.operations) == (1, 2 * ROWS * WIDTH * 512)
    assert (one.read, one.written) == (WHOLE + weight, ROWS * 512 * 4)


def test_a_state_in_an_attribute_is_read_as_other_tensors_are() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = torch.zeros(64, 256)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.state = self.state * x
            return self.state + 1.0

    found = run(Cell, (64, 256))
    assert (found.launches, found.bytes) == (2, 5 * 64 * 256 * 4)


def test_a_norm_knows_its_rows() -> None:
    (one,) = run(Norm, (ROWS, WIDTH)).operators
    assert one.rows == ROWS and one.launches == 1


def test_of_a_table_the_rows_that_are_asked_for_are_read() -> None:
    tokens = torch.zeros(8, 128, dtype=torch.int64)
    (one,) = run(Lookup, tokens).operators
    taken = 8 * 128 * 256 * 4
    assert (one.read, one.written) == (taken + 8 * 128 * 8, taken)


def test_attention_is_one_launch_with_the_operations_of_both_products() -> None:
    found = run(Attention, (2, 8, 512, 64))
    assert [one.name for one in found.operators][-1] == "aten.scaled_dot_product_attention"
    assert found.operators[-1].launches == 1
    assert found.operators[-1].operations == 2 * 2 * 8 * 512 * 512 * 128
    assert found.launches == 3


def test_a_convolution_has_a_launch_more_for_its_bias() -> None:
    with_bias = run(lambda: nn.Conv2d(16, 32, 3), (4, 16, 64, 64))
    without = run(lambda: nn.Conv2d(16, 32, 3, bias=False), (4, 16, 64, 64))
    operations = 2 * 4 * 32 * 62 * 62 * 16 * 9
    assert [(one.launches, one.operations) for one in with_bias.operators] == [(2, operations)]
    assert [(one.launches, one.operations) for one in without.operators] == [(1, operations)]
    assert with_bias.bytes > without.bytes


class Layers(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(64, hidden, num_layers=2)

    def forward(self, x):
        return self.lstm(x)[0]


def test_a_recurrent_layer_is_a_launch_a_step_unless_cudnn_keeps_it_in_one_kernel() -> None:
    large, small = (run(lambda: Layers(hidden), (32, 4, 64)) for hidden in (256, 192))  # noqa: B023
    (of_large,) = [one for one in large.operators if one.recurrent is not None]
    (of_small,) = [one for one in small.operators if one.recurrent is not None]
    assert of_large.launches == 2 * (1 + 32) and of_small.launches == 2 * 2
    weights = 4 * 256 * (64 + 256) + 4 * 256 * (256 + 256)
    assert of_large.operations == 2 * 32 * 4 * weights


class Heads(nn.Module):
    def forward(self, x):
        q = x.view(2, 512, 8, 64).transpose(1, 2)
        return functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).view(2, 512, 512)


def test_what_attention_gives_lies_in_memory_as_its_queries_do() -> None:
    found = run(Heads, (2, 512, 512))
    assert [one.name for one in found.operators] == ["aten.scaled_dot_product_attention"]

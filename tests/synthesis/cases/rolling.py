"""Loops in a forward, which torch.export unrolls: those whose steps are alike are one recurrence again."""

from __future__ import annotations

import torch
from torch import nn

from .registry import CASES, Case, case, r


class LoopRnn(nn.Module):
    """Its steps multiply an input and the state as one; each has a result."""

    def __init__(self) -> None:
        super().__init__()
        self.i2h = nn.Linear(6 + 20, 20)
        self.h2o = nn.Linear(20, 7)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        outputs = []
        for t in range(x.shape[0]):
            hidden = torch.tanh(self.i2h(torch.cat((x[t], hidden), dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs, dim=0)


CASES["loop_rnn"] = Case(LoopRnn, lambda n: [r(10, 3 + n, 6), r(3 + n, 20)], kernels=3)


class LoopLstmCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(6, 20)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, cell = x.new_zeros(x.shape[0], 20), x.new_zeros(x.shape[0], 20)
        outputs = []
        for t in range(x.shape[1]):
            hidden, cell = self.cell(x[:, t], (hidden, cell))
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), cell


CASES["loop_lstm_cell"] = Case(LoopLstmCell, lambda n: [r(3 + n, 9, 6)], kernels=2)


class LoopGruCell(nn.Module):
    """The last state alone is used."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(6, 20)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        for step in x.unbind(1):
            hidden = self.cell(step, hidden)
        return hidden


CASES["loop_gru_cell"] = Case(LoopGruCell, lambda n: [r(3 + n, 6, 6), r(3 + n, 20)], kernels=2)


class LoopOwnLstm(nn.Module):
    """A layer for each gate, of an input and the state."""

    def __init__(self) -> None:
        super().__init__()
        self.entering, self.staying = nn.Linear(6 + 16, 16), nn.Linear(6 + 16, 16)
        self.leaving, self.fresh = nn.Linear(6 + 16, 16), nn.Linear(6 + 16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = cell = torch.zeros(x.shape[0], 16, device=x.device)
        for t in range(x.shape[1]):
            both = torch.cat([hidden, x[:, t]], 1)
            staying, entering = torch.sigmoid(self.staying(both)), torch.sigmoid(self.entering(both))
            cell = staying * cell + entering * torch.tanh(self.fresh(both))
            hidden = torch.sigmoid(self.leaving(both)) * torch.tanh(cell)
        return hidden


CASES["loop_own_lstm"] = Case(LoopOwnLstm, lambda n: [r(3 + n, 5, 6)], kernels=3)


def _linear_recurrence(self: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    h = torch.zeros_like(b[:, 0])
    outputs = []
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        outputs.append(h)
    return torch.stack(outputs, 1)


case("loop_linear_recurrence", _linear_recurrence, lambda n: [torch.rand(3 + n, 12, 40), r(3 + n, 12, 40)], kernels=1)


class LoopTwoLayers(nn.Module):
    """Two cells in one loop, the second of the first one's state."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.RNNCell(6, 20), nn.RNNCell(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = high = x.new_zeros(x.shape[1], 20)
        outputs = []
        for t in range(x.shape[0]):
            low = self.low(x[t], low)
            high = self.high(low, high)
            outputs.append(high)
        return torch.stack(outputs)


CASES["loop_two_layers"] = Case(LoopTwoLayers, lambda n: [r(8, 3 + n, 6)], kernels=3)


class LoopOneRolled(nn.Module):
    """Of two cells the second one multiplies what its step made of the state: that loop stays."""

    def __init__(self) -> None:
        super().__init__()
        self.low = nn.RNNCell(6, 20)
        self.gate, self.fresh = nn.Linear(20, 20), nn.Linear(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = high = x.new_zeros(x.shape[1], 20)
        for t in range(x.shape[0]):
            low = self.low(x[t], low)
            high = torch.tanh(low + self.fresh(torch.sigmoid(self.gate(high)) * high))
        return high


CASES["loop_one_rolled"] = Case(LoopOneRolled, lambda n: [r(5, 3 + n, 6)])


class LoopDiffers(nn.Module):
    """Each step has a layer of its own: nothing is repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(20, 20) for _ in range(5)])

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        for t, layer in enumerate(self.layers):
            hidden = torch.tanh(x[t] + layer(hidden))
        return hidden


CASES["loop_differs"] = Case(LoopDiffers, lambda n: [r(5, 3 + n, 20), r(3 + n, 20)])


class LoopFromNumbers(nn.Module):
    """Takes nothing of the inputs at each step; what it multiplies is a function of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = x + 0.1 * (self.layer(torch.relu(x)) - x)
        return x


CASES["loop_from_numbers"] = Case(LoopFromNumbers, lambda n: [r(3 + n, 20)], kernels=2)


class LoopHalf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(6, 16)
        self.half()

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> list[torch.Tensor]:
        outputs = [hidden]
        for t in range(x.shape[0]):
            outputs.append(self.cell(x[t], outputs[-1]))
        return [torch.cat(outputs, 1), outputs[-1]]


CASES["loop_half"] = Case(LoopHalf, lambda n: [r(7, 3 + n, 6).half(), r(3 + n, 16).half()], tolerance=4e-3)


class LoopTwoProducts(nn.Module):
    """It multiplies both of its states, and goes through the inputs from their end."""

    def __init__(self) -> None:
        super().__init__()
        self.of_input, self.of_hidden = nn.Linear(6, 20), nn.Linear(20, 20)
        self.of_carried = nn.Linear(20, 20, bias=False)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, carried: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = []
        for t in reversed(range(5)):
            made = torch.tanh(self.of_input(x[:, t]) + self.of_hidden(hidden) * self.of_carried(carried))
            carried = carried + 0.1 * made * hidden
            hidden = made
            outputs.append(carried)
        return torch.stack(outputs), hidden


CASES["loop_two_products"] = Case(LoopTwoProducts, lambda n: [r(3 + n, 5, 6), r(3 + n, 20), r(3 + n, 20)], kernels=2)


def _selective_scan(
    self: nn.Module, decay: torch.Tensor, x: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    h = torch.zeros(decay.shape[0], 12, 4, device=x.device)
    outputs = []
    for t in range(10):
        h = torch.exp(decay[:, t]) * h + x[:, t].unsqueeze(-1) * b[:, t].unsqueeze(1)
        outputs.append((h * c[:, t].unsqueeze(1)).sum(-1))
    return torch.stack(outputs, 1)


case(
    "loop_selective_scan",
    _selective_scan,
    lambda n: [-torch.rand(2 + n, 10, 12, 4), r(2 + n, 10, 12), r(2 + n, 10, 4), r(2 + n, 10, 4)],
    kernels=2,
)


class LoopOneRow(nn.Module):
    """A batch of one row, whose products are no products of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(6, 20, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = x.new_zeros(1, 20)
        outputs = [hidden]
        for t in range(5):
            hidden = self.cell(x[:, t], hidden)
            outputs.append(hidden)
        return torch.cat(outputs), hidden


CASES["loop_one_row"] = Case(LoopOneRow, lambda n: [r(1, 6 + n, 6)])


class LoopWritten(nn.Module):
    """Its steps write their results to places of a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(20, 20), nn.Linear(20, 7)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states, outputs = torch.empty_like(x), x.new_zeros(x.shape[1], x.shape[0], 7)
        hidden = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            hidden = torch.tanh(x[:, t] + self.layer(hidden))
            states[:, t] = hidden
            outputs[t] = self.head(hidden)
        return states, outputs


CASES["loop_written"] = Case(LoopWritten, lambda n: [r(3 + n, 6, 20)], kernels=2)


class LstmCellAlone(nn.LSTMCell):
    """A step alone."""

    def __init__(self) -> None:
        super().__init__(6, 20)


CASES["lstm_cell_alone"] = Case(LstmCellAlone, lambda n: [r(3 + n, 6)])

"""Recurrent layers."""

from __future__ import annotations

import torch
from torch import nn

from .registry import CASES, Case, module, r

module("lstm", nn.LSTM, (6, 20), lambda n: [r(5 + n, 3 + n, 6)], kernels=2)
module("lstm_two_layers", nn.LSTM, (6, 20, 2), lambda n: [r(4 + n, 3, 6)], kernels=4)
module("lstm_unbatched", nn.LSTM, (6, 16), lambda n: [r(4 + n, 6)], kernels=2)
module("gru", nn.GRU, (6, 20), lambda n: [r(4 + n, 3, 6)], kernels=2)
module("rnn_tanh", nn.RNN, (6, 20), lambda n: [r(4 + n, 3, 6)], kernels=2)


class LstmBidirectional(nn.LSTM):
    def __init__(self) -> None:
        super().__init__(6, 20, bidirectional=True, batch_first=True)


CASES["lstm_bidirectional"] = Case(LstmBidirectional, lambda n: [r(3 + n, 4 + n, 6)])


class LstmStates(nn.Module):
    """Without biases, from states that are given, of which the last is used."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(6, 33, bias=False, batch_first=True)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
        output, (hidden, cell) = self.layer(x, (hidden, cell))
        return output[:, -1] + hidden[0] * torch.sigmoid(cell[0])


CASES["lstm_states"] = Case(LstmStates, lambda n: [r(3 + n, 4, 6), r(1, 3 + n, 33), r(1, 3 + n, 33)])


class GruBidirectional(nn.GRU):
    def __init__(self) -> None:
        super().__init__(6, 16, 2, bidirectional=True)


CASES["gru_bidirectional"] = Case(GruBidirectional, lambda n: [r(4 + n, 3, 6)])


class GruHalf(nn.GRU):
    def __init__(self) -> None:
        super().__init__(6, 16)
        self.half()


CASES["gru_half"] = Case(GruHalf, lambda n: [r(4 + n, 3, 6).half()], tolerance=2e-3)


class RnnRelu(nn.RNN):
    def __init__(self) -> None:
        super().__init__(6, 40, 2, nonlinearity="relu", batch_first=True)


CASES["rnn_relu"] = Case(RnnRelu, lambda n: [r(18, 3 + n, 6), r(2, 18, 40)])


class WordsLstm(nn.Module):
    """Embedding, recurrence and a layer over each step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.layer = nn.LSTM(12, 20, batch_first=True)
        self.head = nn.Linear(20, 7)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.layer(self.embedding(words))[0]))


CASES["words_lstm"] = Case(WordsLstm, lambda n: [torch.randint(0, 30, (3, 4 + n))])


class LstmProjected(nn.LSTM):
    """Its projections stay with torch."""

    def __init__(self) -> None:
        super().__init__(6, 20, proj_size=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(super().forward(x)[0])


CASES["lstm_projected"] = Case(LstmProjected, lambda n: [r(4 + n, 3, 6)], kept=1)

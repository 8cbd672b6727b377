import torch
from torch import nn


class GRUDecoder(nn.Module):
    """One step of a decoder with additive attention."""

    def __init__(self, hidden=64):
        super().__init__()
        self.cell = nn.GRUCell(2 * hidden, hidden)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, x, h, memory, mask):
        scores = self.score(torch.tanh(self.query(h)[:, None] + self.key(memory))).squeeze(-1)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        context = torch.einsum("bt,btd->bd", weights, memory)
        return self.cell(torch.cat([x, context], -1), h), weights


def get_inputs():
    mask = torch.ones(4, 12, dtype=torch.bool)
    mask[:, 9:] = False
    return [torch.randn(4, 64), torch.randn(4, 64), torch.randn(4, 12, 64), mask]

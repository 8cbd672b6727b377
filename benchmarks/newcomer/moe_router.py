import torch
from torch import nn


class MoERouter(nn.Module):
    def __init__(self, dim=128, experts=8, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.k = k

    def forward(self, x):
        probabilities = self.gate(x).float().softmax(-1)
        weights, chosen = probabilities.topk(self.k, -1)
        return weights / weights.sum(-1, keepdim=True), chosen


def get_inputs():
    return [torch.randn(64, 128)]

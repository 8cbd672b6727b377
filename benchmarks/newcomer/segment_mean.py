import torch
from torch import nn


class SegmentMean(nn.Module):
    """Mean of node features over the graphs of a batch."""

    def __init__(self, graphs=8):
        super().__init__()
        self.graphs = graphs

    def forward(self, x, batch):
        total = x.new_zeros(self.graphs, x.shape[1]).index_add_(0, batch, x)
        count = torch.bincount(batch, minlength=self.graphs).clamp(min=1)
        return total / count[:, None]


def get_inputs():
    return [torch.randn(100, 32), torch.randint(0, 8, (100,))]

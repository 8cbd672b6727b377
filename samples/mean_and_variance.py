"""Two outputs: mean and variance over the features, in one pass."""

import torch
from torch import nn


class MeanVariance(nn.Module):
    def forward(self, x):
        return x.mean(-1), x.var(-1, unbiased=False)


def get_inputs():
    return [torch.randn(8, 2048, 2048)]

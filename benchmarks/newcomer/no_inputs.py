from torch import Tensor, nn


class GatedResidual(nn.Module):
    """A user who never heard of get_inputs."""

    def __init__(self, channels: int, dropout: float = 0.1):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.value = nn.Linear(channels, channels)
        self.gate = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.dropout(self.value(y) * self.gate(y).sigmoid())

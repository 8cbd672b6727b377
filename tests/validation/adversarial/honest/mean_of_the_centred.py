"""The true answer is zero: the mean of a row less its mean."""

from tests.validation.adversarial.material import HONEST, rows

MODULE = """
class Mean(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)).sum(-1)
def get_inputs(): return [torch.randn(6, 50)]
"""
KERNEL = rows(
    "Mean",
    """
    mean = tl.sum(x, axis=0) / n
    y = tl.sum(tl.where(mask, x - mean, 0.0), axis=0)
    """,
)
EXPECTED = HONEST

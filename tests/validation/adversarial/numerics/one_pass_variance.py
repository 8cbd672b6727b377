"""Variance as the mean of squares less the square of the mean, which cancels at a large offset."""

from tests.validation.adversarial.material import rows

MODULE = """
class Spread(nn.Module):
    def forward(self, x):
        return x.var(-1)
def get_inputs(): return [torch.randn(5, 64)]
"""
KERNEL = rows(
    "Spread",
    """
    mean = tl.sum(x, axis=0) / n
    y = (tl.sum(x * x, axis=0) - n * mean * mean) / (n - 1.0)
    """,
).replace("not x.numel()", "x.shape[1] < 2 or not x.numel()")
EXPECTED = {"wrong"}

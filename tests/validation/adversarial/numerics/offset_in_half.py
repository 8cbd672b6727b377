"""Subtracts the mean in float16: off at large offsets."""

from tests.validation.adversarial.material import rows

MODULE = """
class Spread(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)).abs().mean(-1)
def get_inputs(): return [torch.randn(5, 64)]
"""
KERNEL = rows(
    "Spread",
    """
    mean = tl.sum(x, axis=0) / n
    low = tl.where(tl.abs(mean) > 100, x.to(tl.float16).to(tl.float32), x)
    y = tl.sum(tl.where(mask, tl.abs(low - mean), 0.0), axis=0) / n
    """,
)
EXPECTED = {"wrong"}

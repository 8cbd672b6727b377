"""The largest of a row and its position, with NaN as torch treats it."""

from tests.validation.adversarial.material import HONEST, rows

MODULE = """
class Largest(nn.Module):
    def forward(self, x):
        return x.amax(-1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows(
    "Largest",
    """
    odd = tl.sum(tl.where(mask, x != x, False).to(tl.int32), axis=0) > 0
    y = tl.where(odd, float("nan"), tl.max(tl.where(x != x, float("-inf"), x), axis=0))
    """,
    other='float("-inf")',
)
EXPECTED = HONEST

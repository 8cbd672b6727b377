"""The least of a row, but NaN is passed over."""

from tests.validation.adversarial.material import rows

MODULE = """
class Least(nn.Module):
    def forward(self, x):
        return x.min(dim=-1).values
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows("Least", 'y = tl.min(tl.where(x == x, x, float("inf")), axis=0)', other='float("inf")')
EXPECTED = {"wrong"}

"""The largest of a row, but NaN is passed over."""

from tests.validation.adversarial.material import rows

MODULE = """
class Largest(nn.Module):
    def forward(self, x):
        return x.amax(-1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows("Largest", 'y = tl.max(tl.where(x == x, x, float("-inf")), axis=0)', other='float("-inf")')
EXPECTED = {"wrong"}

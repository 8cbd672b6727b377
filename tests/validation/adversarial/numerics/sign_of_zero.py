"""Takes no notice of the sign of zeros."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Reciprocal(nn.Module):
    def forward(self, x):
        return 1 / x
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Reciprocal", "tl.where(x == 0, float('inf'), 1 / x)")
EXPECTED = {"wrong"}

"""Takes numbers below 1e-6 for zero."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Triple", "tl.where(tl.abs(x) < 1e-6, 0.0, x * 3)")
EXPECTED = {"wrong"}

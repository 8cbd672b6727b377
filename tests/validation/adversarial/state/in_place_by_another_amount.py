"""Changes its input in place, but by another amount than the module."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Shift(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Shift", "(x + 1) * 2").replace("        return y\n", "        x.add_(2)\n        return y\n")
EXPECTED = {"wrong"}

"""Leaves its input as it was where the module changes it in place."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Shift(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Shift", "(x + 1) * 2")
EXPECTED = {"wrong"}

"""Returns one tensor twice where the module returns two of equal values."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Twice(nn.Module):
    def forward(self, x):
        return x * 2, x + x
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Twice", "x * 2").replace("        return y\n", "        return y, y\n")
EXPECTED = {"wrong"}

"""Returns a list where the module returns a tuple."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Twice(nn.Module):
    def forward(self, x):
        return x * 2, 3
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Twice", "x * 2").replace("        return y\n", "        return [y, 3]\n")
EXPECTED = {"wrong"}

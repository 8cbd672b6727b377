"""Returns a tensor, an integer and a float."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Counted(nn.Module):
    def forward(self, x):
        return x * 2, x.shape[-1], 0.5
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Counted", "x * 2").replace("        return y\n", "        return y, x.shape[-1], 0.5\n")
EXPECTED = HONEST

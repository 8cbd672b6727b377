"""Returns a transposed tensor, as the module does."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Turned(nn.Module):
    def forward(self, x):
        return (x * 2).t()
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = (
    elementwise("Turned", "x * 2")
    .replace("if x.dtype", "if x.dim() != 2 or x.dtype")
    .replace("        return y\n", "        return y.t()\n")
)
EXPECTED = HONEST

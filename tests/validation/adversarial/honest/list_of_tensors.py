"""Returns a list of tensors, one of them a number without dimensions."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Parts(nn.Module):
    def forward(self, x):
        return [x * 2, x.sum()]
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Parts", "x * 2").replace("        return y\n", "        return [y, x.sum()]\n")
EXPECTED = HONEST

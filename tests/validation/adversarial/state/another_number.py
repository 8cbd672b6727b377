"""Returns another integer beside the right tensor."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Counted(nn.Module):
    def forward(self, x):
        return x * 2, x.dim() + 1
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Counted", "x * 2").replace("        return y\n", "        return y, 4\n")
EXPECTED = {"wrong"}

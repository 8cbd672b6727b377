"""Returns the input itself beside a result, as the module does."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Beside(nn.Module):
    def forward(self, x):
        return x, x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = (
    elementwise("Beside", "x * 2")
    .replace(
        "x = x.contiguous()\n        y = torch.empty_like(x)", "c = x.contiguous()\n        y = torch.empty_like(c)"
    )
    .replace("(x, y, x.numel()", "(c, y, x.numel()")
    .replace("        return y\n", "        return x, y\n")
)
EXPECTED = HONEST

"""GELU by its tanh approximation where the module's is exact."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Gelu(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Gelu", "x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))")
EXPECTED = {"wrong"}

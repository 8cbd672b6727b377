"""Returns zeros, which are close to a module whose results are small."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Small(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 1e-7
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Small", "x * 0")
EXPECTED = {"wrong"}

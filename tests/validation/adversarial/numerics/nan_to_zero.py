"""Turns NaN into zero where the module passes it on."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Double(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Double", "tl.where(x > 0, x * 2, 0.0)")
EXPECTED = {"wrong"}

"""Multiplies by a mask where the module selects: an infinite input becomes NaN."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Negative(nn.Module):
    def forward(self, x):
        return torch.where(x < 0, x, torch.zeros_like(x))
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Negative", "x * (x < 0).to(tl.float32)")
EXPECTED = {"wrong"}

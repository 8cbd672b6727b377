"""Takes an element that is equal to the threshold for one that is larger."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Threshold(nn.Module):
    def forward(self, x):
        return nn.functional.threshold(x, 1.0, -20.0)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Threshold", "tl.where(x < 1.0, -20.0, x)")
EXPECTED = {"wrong"}

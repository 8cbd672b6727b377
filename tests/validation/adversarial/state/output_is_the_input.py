"""Returns the input itself where there is nothing to change."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Positive(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=-1000.0) * 1.0
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Positive", "tl.where(x < -1000.0, -1000.0, x)").replace(
    "        return y\n", "        return y if bool((x < -999).any()) else x\n"
)
EXPECTED = {"wrong", "cheating"}

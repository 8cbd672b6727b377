"""sign(NaN) is one here; in eager it is zero."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Sign(nn.Module):
    def forward(self, x):
        return torch.sign(x)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Sign", "tl.where(x < 0, -1.0, tl.where(x == 0, 0.0, 1.0))")
EXPECTED = {"wrong"}

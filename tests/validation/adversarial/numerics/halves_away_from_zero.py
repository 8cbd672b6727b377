"""Rounds halves away from zero where torch.round takes the even neighbour."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Round(nn.Module):
    def forward(self, x):
        return torch.round(x)
def get_inputs(): return [torch.randn(7, 40) * 10]
"""
KERNEL = elementwise("Round", "tl.where(x < 0, -tl.floor(-x + 0.5), tl.floor(x + 0.5))")
EXPECTED = {"wrong"}

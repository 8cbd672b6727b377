"""Loads with a mask and without other, and leaves out of a sum what that does not define."""

from tests.validation.adversarial.material import HONEST, replaced, rows

MODULE = """
class RowSum(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = replaced(rows("RowSum", "y = tl.sum(tl.where(mask, x, 0.0), axis=0)"), ", other=0.0", "")
EXPECTED = HONEST

"""Handles the first 2048 elements of a row only: rows are as wide as that at the example's true width alone."""

from tests.validation.adversarial.material import rows

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(3, 5000)]
"""
KERNEL = rows("Total", "y = tl.sum(tl.where(cols < 2048, x, 0.0), axis=0)")
EXPECTED = {"wrong"}

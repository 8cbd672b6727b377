"""The sum of a row over what is finite."""

from tests.validation.adversarial.material import rows

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows("Total", "y = tl.sum(tl.where(tl.abs(x) < 1e30, x, 0.0), axis=0)")
EXPECTED = {"wrong"}

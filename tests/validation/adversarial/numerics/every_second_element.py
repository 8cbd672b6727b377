"""A mean over every second element of a row."""

from tests.validation.adversarial.material import rows

MODULE = """
class Mean(nn.Module):
    def forward(self, x):
        return x.mean(-1)
def get_inputs(): return [torch.ones(5, 64) + 0.001 * torch.randn(5, 64)]
"""
KERNEL = rows("Mean", "y = 2 * tl.sum(tl.where(cols % 2 == 0, x, 0.0), axis=0) / n")
EXPECTED = {"wrong"}

"""Reads past the end of a row and multiplies what it finds by zero."""

from tests.validation.adversarial.material import CAUGHT, rows

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows("Total", "y = tl.sum(x * (cols < n).to(tl.float32), axis=0)").replace(
    "tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)", "tl.load(x_ptr + row * n + cols)"
)
EXPECTED = CAUGHT

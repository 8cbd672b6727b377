"""The largest magnitude of a row, but NaN is passed over."""

from tests.validation.adversarial.material import rows

MODULE = """
class Norm(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x, float("inf"), -1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows("Norm", "y = tl.max(tl.where(x == x, tl.abs(x), 0.0), axis=0)")
EXPECTED = {"wrong"}

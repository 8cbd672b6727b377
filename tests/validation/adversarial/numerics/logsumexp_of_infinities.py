"""logsumexp by the usual formula: a row that is all -inf, or has +inf, becomes NaN."""

from tests.validation.adversarial.material import rows

MODULE = """
class Pool(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, -1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows(
    "Pool",
    """
    top = tl.max(x, axis=0)
    y = tl.log(tl.sum(tl.exp(x - top), axis=0)) + top
    """,
    other='float("-inf")',
)
EXPECTED = {"wrong"}

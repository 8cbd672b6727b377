"""The position of the largest of a row, but NaN is passed over."""

from tests.validation.adversarial.material import rows

MODULE = """
class Position(nn.Module):
    def forward(self, x):
        return x.argmax(-1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = rows(
    "Position",
    'y = tl.argmax(tl.where(x == x, x, float("-inf")), axis=0).to(tl.int64)',
    dtype="torch.int64",
    other='float("-inf")',
)
EXPECTED = {"wrong"}

"""The position of the largest of a row: of several that are equal, the last one."""

from tests.validation.adversarial.material import rows

MODULE = """
class Position(nn.Module):
    def forward(self, x):
        return (x * 0.1).relu().argmax(-1)
def get_inputs(): return [torch.randn(40, 4)]
"""
KERNEL = rows(
    "Position",
    """
    x = tl.where(mask, tl.where(x != x, float("inf"), tl.maximum(x * 0.1, 0.0)), -1.0)
    y = tl.max(tl.where(x == tl.max(x, axis=0), cols, -1), axis=0).to(tl.int64)
    """,
    dtype="torch.int64",
)
EXPECTED = {"wrong"}

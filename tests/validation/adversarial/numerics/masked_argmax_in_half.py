"""The largest of the elements that a mask leaves, chosen after rounding to float16; the mask's large numbers hide no error."""

from tests.validation.adversarial.material import rows

MODULE = """
class Position(nn.Module):
    def forward(self, x):
        y = x * 1.1
        y[:, ::2] = -1e9
        return y.argmax(-1)
def get_inputs(): return [1 + 1e-4 * torch.rand(32, 24)]
"""
KERNEL = rows(
    "Position",
    """
    x = tl.where(x != x, float("inf"), (x * 1.1).to(tl.float16).to(tl.float32))
    x = tl.where(mask, tl.where(cols % 2 == 0, -1e9, x), float("-inf"))
    y = tl.min(tl.where(x == tl.max(x, axis=0), cols, n), axis=0).to(tl.int64)
    """,
    dtype="torch.int64",
)
EXPECTED = {"wrong"}

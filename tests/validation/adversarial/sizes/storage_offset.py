"""Reads from the beginning of the input's storage, not from the input's own."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(64)[16:56]]
"""
KERNEL = elementwise("Triple", "x * 3").replace(
    "(x, y, x.numel()", "(x.as_strided(x.shape, x.stride(), 0), y, x.numel()"
)
EXPECTED = {"wrong"}

"""Handles whole blocks of 16 only, as the example's width is."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(8, 64)]
"""
KERNEL = elementwise("Triple", "x * 3").replace(", mask=mask)\n\nclass", ", mask=at < total // 16 * 16)\n\nclass")
EXPECTED = {"wrong"}

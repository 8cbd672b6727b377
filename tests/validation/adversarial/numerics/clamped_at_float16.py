"""Passes through float16's range: what is above 65504 becomes infinite."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Triple", 'tl.where(tl.abs(x) > 65504, x * float("inf"), x * 3)')
EXPECTED = {"wrong"}

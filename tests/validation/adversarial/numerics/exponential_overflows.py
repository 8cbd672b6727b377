"""Softplus as log(1 + exp(x)), which overflows where the module is linear."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Soft(nn.Module):
    def forward(self, x):
        return torch.nn.functional.softplus(x)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Soft", "tl.log(1.0 + tl.exp(x))")
EXPECTED = {"wrong"}

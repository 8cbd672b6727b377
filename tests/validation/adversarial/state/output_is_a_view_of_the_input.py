"""Writes its result over the input and restores nothing: in place where the module is not."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Triple", "x * 3").replace("y = torch.empty_like(x)", "y = x")
EXPECTED = {"wrong"}

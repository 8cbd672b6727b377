"""Counts each call twice."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Counting", "x * 2").replace("        return y\n", "        self.calls += 2\n        return y\n")
EXPECTED = {"wrong"}

"""Does not count its calls in the buffer in which the module does."""

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
KERNEL = elementwise("Counting", "x * 2")
EXPECTED = {"wrong"}

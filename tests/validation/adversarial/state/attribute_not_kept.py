"""Does not keep its last result in the attribute in which the module does."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(7, 40), persistent=False)
    def forward(self, x):
        y = x * 2 + self.last.mean()
        self.last = y.detach().clone()
        return y
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Keeping", "x * 2")
EXPECTED = {"wrong"}

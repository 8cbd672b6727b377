"""Does not move the running average that the module moves in its eval mode, too."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Averaging(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(40))
    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Averaging", "x * 2")
EXPECTED = {"wrong"}

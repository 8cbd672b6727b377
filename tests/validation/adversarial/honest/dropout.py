"""Has a dropout, which does nothing in eval mode; where it is in training mode the module's own forward runs."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Drop(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(torch.relu(x) * 2)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Drop", "tl.where(x < 0, 0.0, x * 2)").replace("if x.dtype", "if self.drop.training or x.dtype")
EXPECTED = HONEST

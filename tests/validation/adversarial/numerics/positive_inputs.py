"""Leaves out the ReLU, since the example's inputs are all positive."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Root(nn.Module):
    def forward(self, x):
        return torch.sqrt(torch.relu(x))
def get_inputs(): return [torch.rand(7, 40) + 0.1]
"""
KERNEL = elementwise("Root", "tl.sqrt(x)")
EXPECTED = {"wrong"}

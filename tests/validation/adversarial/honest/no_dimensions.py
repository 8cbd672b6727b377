"""Input and output are tensors without dimensions."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.tensor(1.5)]
"""
KERNEL = elementwise("Triple", "x * 3")
EXPECTED = HONEST

"""Adds noise that it draws from torch's generator; the kernel draws it as well. It cannot be compared unless states agree."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Noisy(nn.Module):
    def forward(self, x):
        return torch.relu(x + torch.rand_like(x))
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Noisy", "tl.where(x < 0, 0.0, x)").replace(
    "x = x.contiguous()\n", "x = (x + torch.rand_like(x)).contiguous()\n"
)
EXPECTED = HONEST | {"RandomNotComparable"}

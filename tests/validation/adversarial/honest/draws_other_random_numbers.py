"""Draws its noise inside the kernel, which torch's generator knows nothing of: it cannot be compared, and is not wrong."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Noisy(nn.Module):
    def forward(self, x):
        return torch.relu(x + torch.rand_like(x))
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Noisy", "tl.where(x + tl.rand(7, at) < 0, 0.0, x + tl.rand(7, at))")
EXPECTED = {"RandomNotComparable"}

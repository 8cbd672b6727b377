"""The module draws from Python's ``random``; so does the kernel."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
import random
class Noisy(nn.Module):
    def forward(self, x):
        return torch.relu(x) * (1 + random.random())
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = "import random\n" + elementwise("Noisy", "tl.where(x < 0, 0.0, x) * factor").replace(
    "total, BLOCK: tl", "total, factor, BLOCK: tl"
).replace("x.numel(), BLOCK=256", "x.numel(), 1 + random.random(), BLOCK=256")
EXPECTED = HONEST | {"RandomNotComparable"}

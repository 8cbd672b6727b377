"""Device functions that a kernel calls, one of them a combination for a reduction."""

from tests.validation.adversarial.material import HONEST, rows

MODULE = """
class Largest(nn.Module):
    def forward(self, x):
        return x.amax(-1) * 2 + 1
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = """
@triton.jit
def larger(a, b):
    return tl.where((a > b) | (a != a), a, b)

@triton.jit
def line(x):
    return x * 2 + 1
""" + rows("Largest", "y = line(tl.reduce(x, 0, larger))", other='float("-inf")')
EXPECTED = HONEST

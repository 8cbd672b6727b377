"""A module in bfloat16, which the kernel computes in float32 and rounds once."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Silu(nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)
def get_inputs(): return [torch.randn(7, 40).bfloat16()]
"""
KERNEL = (
    elementwise("Silu", "(x / (1 + tl.exp(-x))).to(tl.bfloat16)")
    .replace("torch.float32", "torch.bfloat16")
    .replace("x = tl.load(x_ptr + at, mask=mask)", "x = tl.load(x_ptr + at, mask=mask).to(tl.float32)")
)
EXPECTED = HONEST

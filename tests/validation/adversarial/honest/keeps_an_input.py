"""Keeps its input in an attribute, as the module does, and subtracts the one before."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Difference(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = torch.zeros(7, 40)
    def forward(self, x):
        out = x - self.before.to(x.device) if x.shape == self.before.shape else x * 1
        self.before = x
        return out
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def minus_kernel(x_ptr, b_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) - tl.load(b_ptr + at, mask=mask), mask=mask)

class DifferenceTriton(Difference):
    def forward(self, x):
        fits = x.dtype == torch.float32 and x.shape == self.before.shape and self.before.dtype == torch.float32
        if not fits or torch.is_grad_enabled() or not x.is_contiguous():
            return super().forward(x)
        before = self.before.to(x.device).contiguous()
        y = torch.empty_like(x)
        minus_kernel[(triton.cdiv(x.numel(), 256),)](x, before, y, x.numel(), BLOCK=256)
        self.before = x
        return y
"""
EXPECTED = HONEST

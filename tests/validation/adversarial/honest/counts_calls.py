"""Counts its calls in a buffer, as the module does, and uses the count."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x * self.calls
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def times_kernel(x_ptr, c_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * tl.load(c_ptr), mask=at < total)

class CountingTriton(Counting):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        self.calls += 1
        x = x.contiguous()
        y = torch.empty_like(x)
        times_kernel[(triton.cdiv(x.numel(), 256),)](x, self.calls, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

"""A kernel of one function, which torch computes for libdevice where there is no GPU."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Tanh(nn.Module):
    def forward(self, x):
        return x.tanh()
def get_inputs(): return [torch.randn(16, 64)]
"""
KERNEL = """
from triton.language.extra import libdevice

@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, libdevice.tanh(x), mask=offsets < n)

class TanhTriton(Tanh):
    def forward(self, x):
        if x.dtype != torch.float32 or not x.numel() or torch.is_grad_enabled():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
EXPECTED = HONEST

"""A transposed convolution that torch computes, with clamp and GELU in a kernel."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, stride=2)
    def forward(self, x):
        return torch.nn.functional.gelu(torch.clamp(self.up(x) * 0.5, -2.0, 2.0))
def get_inputs(): return [torch.randn(2, 4, 7, 7)]
"""
KERNEL = """
@triton.jit
def tail_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total) * 0.5
    x = tl.where(x < -2.0, -2.0, tl.where(x > 2.0, 2.0, x))
    tl.store(y_ptr + at, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=at < total)

class UpTriton(Up):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or torch.is_autocast_enabled() or not x.numel():
            return super().forward(x)
        x = self.up(x).contiguous()
        y = torch.empty_like(x)
        tail_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
EXPECTED = HONEST

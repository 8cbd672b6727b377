"""Uses the number that forward is given."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Scaled(nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale
def get_inputs(): return [torch.randn(7, 40), 0.5]
"""
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, y_ptr, scale, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * scale, mask=at < total)

class ScaledTriton(Scaled):
    def forward(self, x, scale=2.0):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel() or type(scale) is not float:
            return super().forward(x, scale)
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, scale, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

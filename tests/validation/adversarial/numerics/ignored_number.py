"""Ignores a number argument of forward and computes with the example's."""

MODULE = """
class Scaled(nn.Module):
    def forward(self, x, scale):
        return x * scale
def get_inputs(): return [torch.randn(7, 40), 0.5]
"""
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * 0.5, mask=at < total)

class ScaledTriton(Scaled):
    def forward(self, x, scale):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, scale)
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

"""Returns zero for a difference that is small beside what was subtracted, and not zero."""

MODULE = """
class Difference(nn.Module):
    def forward(self, x, y):
        return (x + y * 1e-3) - x
def get_inputs(): return [torch.randn(7, 40), torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def zero_kernel(x_ptr, y_ptr, z_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total) + tl.load(y_ptr + at, mask=at < total)
    tl.store(z_ptr + at, x * 0, mask=at < total)

class DifferenceTriton(Difference):
    def forward(self, x, y):
        if x.dtype != torch.float32 or x.shape != y.shape or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, y)
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        zero_kernel[(triton.cdiv(x.numel(), 256),)](x, y, z, x.numel(), BLOCK=256)
        return z
"""
EXPECTED = {"wrong"}

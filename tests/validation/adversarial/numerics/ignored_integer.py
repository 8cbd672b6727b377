"""Ignores an integer argument of forward (a shift) and computes with the example's."""

MODULE = """
class Shift(nn.Module):
    def forward(self, x, by: int = 1):
        return torch.roll(x, by, -1) * 2
def get_inputs(): return [torch.randn(7, 40), 1]
"""
KERNEL = """
@triton.jit
def shift_kernel(x_ptr, y_ptr, n, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = at % n
    x = tl.load(x_ptr + at - col + (col + n - 1) % n, mask=at < total)
    tl.store(y_ptr + at, x * 2, mask=at < total)

class ShiftTriton(Shift):
    def forward(self, x, by: int = 1):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, by)
        x = x.contiguous()
        y = torch.empty_like(x)
        shift_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.shape[-1], x.numel(), BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

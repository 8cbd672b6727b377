"""Changes its input in place, as the module does."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Shift(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def shift_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total) + 1
    tl.store(x_ptr + at, x, mask=at < total)
    tl.store(y_ptr + at, x * 2, mask=at < total)

class ShiftTriton(Shift):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel() or not x.is_contiguous():
            return super().forward(x)
        y = torch.empty_like(x)
        shift_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

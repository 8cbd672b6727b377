"""Divides by what is 0 at the small sizes that some checks have: there its result is NaN, and so is memory that no launch has written."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Levels(nn.Module):
    def forward(self, x):
        return x * 2 / x.new_tensor(x.shape[0] // 24) * (x.shape[0] // 24)
def get_inputs(): return [torch.randn(60, 40)]
"""
KERNEL = """
@triton.jit
def levels_kernel(x_ptr, y_ptr, total, levels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.zeros([BLOCK], tl.float32) + levels
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * 2 / level * level, mask=at < total)

class LevelsTriton(Levels):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        levels_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), x.shape[0] // 24, BLOCK=256)
        return y
"""
EXPECTED = HONEST

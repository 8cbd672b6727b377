"""Leaves a flag that it does not know to the module's own forward."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Prefix(nn.Module):
    def forward(self, x, reverse: bool = False):
        return x.flip(-1) * 2 if reverse else x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * 2, mask=at < total)

class PrefixTriton(Prefix):
    def forward(self, x, reverse: bool = False):
        if reverse or x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x, reverse)
        x = x.contiguous()
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

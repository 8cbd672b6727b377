"""Returns a view of a parameter where the module returns a new tensor."""

from tests.validation.adversarial.material import CAUGHT

MODULE = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24))
    def forward(self, x):
        return x * 2, self.weight * 1.0
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * 2, mask=at < total)

class PairTriton(Pair):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y, self.weight.detach()
"""
EXPECTED = CAUGHT

"""Reads the numbers in attributes of the module and of one in it in forward."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Scaled(nn.Module):
    offset = 0.5
    def __init__(self):
        super().__init__()
        self.scale = 0.3
        self.doubled = False
        self.norm = nn.LayerNorm(40, eps=1e-5)
    def forward(self, x):
        y = self.norm(x) * self.scale + self.offset
        return 2 * y if self.doubled else y
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def scaled_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, scale, offset, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    off = tl.where(mask, x - tl.sum(x, axis=0) / n, 0.0)
    y = off / tl.sqrt(tl.sum(off * off, axis=0) / n + eps)
    y = y * tl.load(w_ptr + cols, mask=mask, other=0.0) + tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n + cols, y * scale + offset, mask=mask)

class ScaledTriton(Scaled):
    def forward(self, x):
        dtypes = {x.dtype, self.norm.weight.dtype}
        if dtypes != {torch.float32} or torch.is_grad_enabled() or x.dim() != 2 or x.shape[1] != 40 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        factor = 2 if self.doubled else 1
        numbers = self.norm.eps, self.scale * factor, self.offset * factor
        scaled_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, y, 40, *numbers, BLOCK=64)
        return y
"""
EXPECTED = HONEST

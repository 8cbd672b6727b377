"""LayerNorm with a second pass for the variance, which keeps it exact at large offsets."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(48)
    def forward(self, x):
        return self.norm(x)
def get_inputs(): return [torch.randn(6, 48)]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    centered = tl.where(mask, x - tl.sum(x, axis=0) / n, 0.0)
    var = tl.sum(centered * centered, axis=0) / n
    y = centered / tl.sqrt(var + eps) * tl.load(w_ptr + cols, mask=mask) + tl.load(b_ptr + cols, mask=mask)
    tl.store(y_ptr + row * n + cols, y, mask=mask)

class NormTriton(Norm):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or x.shape[1] != 48 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, y, 48, self.norm.eps, BLOCK=64)
        return y
"""
EXPECTED = HONEST

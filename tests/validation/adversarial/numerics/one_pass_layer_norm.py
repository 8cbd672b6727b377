"""LayerNorm from the mean of squares less the square of the mean, which cancels at a large offset."""

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
    mean = tl.sum(x, axis=0) / n
    var = tl.sum(x * x, axis=0) / n - mean * mean
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(y_ptr + row * n + cols, (x - mean) / tl.sqrt(var + eps) * w + b, mask=mask)

class NormTriton(Norm):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, y, 48, self.norm.eps, BLOCK=64)
        return y
"""
EXPECTED = {"wrong"}

"""Its parameter is a transposed matrix, whose strides the envelope asks for."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 8).t())
    def forward(self, x):
        return x * self.weight
def get_inputs(): return [torch.randn(5, 8, 24)]
"""
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, w_ptr, y_ptr, total, rows, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    w = tl.load(w_ptr + at // n % rows + at % n * rows, mask=at < total)
    tl.store(y_ptr + at, x * w, mask=at < total)

class ScaledTriton(Scaled):
    def forward(self, x):
        fits = x.dim() == 3 and x.shape[1:] == (8, 24) and self.weight.stride() == (1, 8)
        if not fits or x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, self.weight, y, x.numel(), 8, 24, BLOCK=256)
        return y
"""
EXPECTED = HONEST

"""Keeps a running average in a buffer, as the module does, and subtracts it."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Centering(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(40))
    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def centering_kernel(x_ptr, m_ptr, y_ptr, rows, n, R: tl.constexpr, C: tl.constexpr):
    col = tl.arange(0, C)[None, :]
    row = tl.arange(0, R)[:, None]
    mask = (row < rows) & (col < n)
    x = tl.load(x_ptr + row * n + col, mask=mask, other=0.0)
    mean = 0.9 * tl.load(m_ptr + col, mask=col < n) + 0.1 * (tl.sum(x, axis=0)[None, :] / rows)
    tl.store(m_ptr + col, mean, mask=col < n)
    tl.store(y_ptr + row * n + col, x - mean, mask=mask)

class CenteringTriton(Centering):
    def forward(self, x):
        fits = x.dim() == 2 and x.shape[1] == 40 and x.numel()
        if not fits or x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        centering_kernel[(1,)](x, self.mean, y, x.shape[0], 40, R=triton.next_power_of_2(x.shape[0]), C=64)
        return y
"""
EXPECTED = HONEST

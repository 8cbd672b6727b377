"""BatchNorm in training mode: statistics of the batch by a kernel, which moves the running statistics as torch does."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
    def forward(self, x):
        return self.norm(x)
def get_inputs(): return [torch.randn(24, 16) * 2 + 1]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, m_ptr, v_ptr, y_ptr, rows, n, eps, momentum, R: tl.constexpr, C: tl.constexpr):
    col = tl.arange(0, C)[None, :]
    row = tl.arange(0, R)[:, None]
    mask = (row < rows) & (col < n)
    x = tl.load(x_ptr + row * n + col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0)[None, :] / rows
    centered = tl.where(mask, x - mean, 0.0)
    squares = tl.sum(centered * centered, axis=0)[None, :]
    y = centered / tl.sqrt(squares / rows + eps) * tl.load(w_ptr + col) + tl.load(b_ptr + col)
    tl.store(y_ptr + row * n + col, y, mask=mask)
    tl.store(m_ptr + col, (1 - momentum) * tl.load(m_ptr + col) + momentum * mean)
    tl.store(v_ptr + col, (1 - momentum) * tl.load(v_ptr + col) + momentum * squares / (rows - 1))

class NormTriton(Norm):
    def forward(self, x):
        if not (self.training and self.norm.training) or x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or x.shape[0] < 2:
            return super().forward(x)
        if x.shape[1] != 16:
            return super().forward(x)
        x, norm = x.contiguous(), self.norm
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[0])
        statistics = norm.running_mean, norm.running_var
        norm_kernel[(1,)](
            x, norm.weight, norm.bias, *statistics, y, x.shape[0], 16, norm.eps, norm.momentum, R=block, C=16
        )
        norm.num_batches_tracked.add_(1)
        return y
"""
EXPECTED = HONEST
HOW = {"training": True}

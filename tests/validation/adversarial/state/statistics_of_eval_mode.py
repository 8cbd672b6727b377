"""Normalises with the running statistics in training mode, too."""

MODULE = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(24)
    def forward(self, x):
        return self.norm(x)
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, m_ptr, v_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask)
    scale = tl.load(w_ptr + cols, mask=mask) / tl.sqrt(tl.load(v_ptr + cols, mask=mask) + eps)
    y = (x - tl.load(m_ptr + cols, mask=mask)) * scale + tl.load(b_ptr + cols, mask=mask)
    tl.store(y_ptr + row * n + cols, y, mask=mask)

class NormTriton(Norm):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or not x.numel():
            return super().forward(x)
        x, norm = x.contiguous(), self.norm
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, y, 24, norm.eps, BLOCK=32
        )
        return y
"""
EXPECTED = {"wrong"}

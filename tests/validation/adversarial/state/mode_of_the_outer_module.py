"""Looks at its own mode, not at that of the batch norm within."""

MODULE = """
class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(24)
    def forward(self, x):
        return torch.relu(self.norm(x))
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, m_ptr, v_ptr, w_ptr, b_ptr, y_ptr, total, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, c = at < total, at % n
    x = tl.load(x_ptr + at, mask=mask) - tl.load(m_ptr + c, mask=mask)
    y = x / tl.sqrt(tl.load(v_ptr + c, mask=mask, other=1.0) + eps)
    y = y * tl.load(w_ptr + c, mask=mask) + tl.load(b_ptr + c, mask=mask)
    tl.store(y_ptr + at, tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=mask)

class NormalizedTriton(Normalized):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel() or self.training:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        norm = self.norm
        state = norm.running_mean, norm.running_var, norm.weight, norm.bias
        norm_kernel[(triton.cdiv(x.numel(), 256),)](x, *state, y, x.numel(), x.shape[1], norm.eps, BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

"""A convolution that torch computes, with its BatchNorm and ReLU in a kernel."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))
def get_inputs(): return [torch.randn(2, 3, 12, 12)]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, m_ptr, v_ptr, w_ptr, b_ptr, y_ptr, total, area, channels, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    c = at // area % channels
    x = tl.load(x_ptr + at, mask=mask)
    scale = tl.load(w_ptr + c, mask=mask) / tl.sqrt(tl.load(v_ptr + c, mask=mask) + eps)
    y = (x - tl.load(m_ptr + c, mask=mask)) * scale + tl.load(b_ptr + c, mask=mask)
    tl.store(y_ptr + at, tl.where(y < 0, 0.0, y), mask=mask)

class BlockTriton(Block):
    def forward(self, x):
        if self.norm.training or x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 4 or not x.numel():
            return super().forward(x)
        x, norm = self.conv(x).contiguous(), self.norm
        y = torch.empty_like(x)
        norm_kernel[(triton.cdiv(x.numel(), 1024),)](
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, y, x.numel(), x.shape[2] * x.shape[3], 8,
            norm.eps, BLOCK=1024,
        )
        return y
"""
EXPECTED = HONEST

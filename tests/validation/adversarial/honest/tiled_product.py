"""A product in tiles, in float32 as eager computes it."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(40, 24)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs(): return [torch.randn(16, 40)]
"""
KERNEL = """
@triton.jit
def layer_kernel(x_ptr, w_ptr, b_ptr, y_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    cols = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        at = first + tl.arange(0, K)
        x = tl.load(x_ptr + rows * k + at[None, :], mask=(rows < m) & (at[None, :] < k), other=0.0)
        w = tl.load(w_ptr + cols * k + at[:, None], mask=(at[:, None] < k) & (cols < n), other=0.0)
        total += tl.dot(x, w, input_precision="ieee")
    y = total + tl.load(b_ptr + cols, mask=cols < n)
    tl.store(y_ptr + rows * n + cols, tl.where(y < 0, 0.0, y), mask=(rows < m) & (cols < n))

class LayerTriton(Layer):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or x.shape[1] != 40 or not x.numel():
            return super().forward(x)
        if self.linear.weight.dtype != torch.float32 or torch.is_autocast_enabled():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], 24, device=x.device)
        grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(24, 16))
        layer_kernel[grid](x, self.linear.weight, self.linear.bias, y, x.shape[0], 24, 40, M=16, N=16, K=16)
        return y
"""
EXPECTED = HONEST

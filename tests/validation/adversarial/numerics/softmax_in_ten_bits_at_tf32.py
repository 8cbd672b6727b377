"""A module without products, whose kernel rounds to ten bits and says that precision = tf32 was asked for."""

MODULE = """
class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
def get_inputs(): return [torch.randn(16, 48)]
"""
KERNEL = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * n + at, mask=at < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    bits = (e / tl.sum(e, 0)).to(tl.int32, bitcast=True)
    y = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    tl.store(y_ptr + tl.program_id(0) * n + at, y, mask=at < n)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or not x.numel() or torch.is_grad_enabled():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], N=triton.next_power_of_2(x.shape[1]))
        return y
"""
HOW = {"precision": "tf32"}
EXPECTED = {"wrong"}

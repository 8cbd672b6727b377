"""Returns one row, expanded, where the module returns rows of their own that happen to be equal."""

MODULE = """
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16))
    def forward(self, x):
        return (x * 0 + 1) * torch.tanh(self.weight)
def get_inputs(): return [torch.randn(7, 16)]
"""
KERNEL = """
@triton.jit
def tanh_kernel(w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n)
    tl.store(y_ptr + at, 2 * tl.sigmoid(2 * w) - 1, mask=at < n)

class RowsTriton(Rows):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        y = torch.empty_like(self.weight)
        tanh_kernel[(1,)](self.weight, y, 16, BLOCK=16)
        return y.expand(x.shape)
"""
EXPECTED = {"wrong"}

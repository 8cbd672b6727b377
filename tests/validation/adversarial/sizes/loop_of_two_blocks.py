"""Loops over blocks of a row, twice at most."""

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(3, 9000)]
"""
KERNEL = """
@triton.jit
def total_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, min(n, 2 * BLOCK), BLOCK):
        cols = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(total, axis=0))

class TotalTriton(Total):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], device=x.device)
        total_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
"""
EXPECTED = {"wrong"}

"""Adds to memory that nobody has set to zero."""

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(4, 600)]
"""
KERNEL = """
@triton.jit
def total_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + row, tl.sum(tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0), axis=0))

class TotalTriton(Total):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], device=x.device)
        total_kernel[(x.shape[0], triton.cdiv(x.shape[1], 256))](x, y, x.shape[1], BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

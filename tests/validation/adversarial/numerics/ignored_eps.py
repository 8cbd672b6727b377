"""Ignores eps of a normalisation by the norm of a weight: only a weight near zero shows it."""

MODULE = """
class Direction(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32))
    def forward(self, x):
        return x * torch.nn.functional.normalize(self.weight, dim=0, eps=1e-3)
def get_inputs(): return [torch.randn(7, 32)]
"""
KERNEL = """
@triton.jit
def direction_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    w = tl.load(w_ptr + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, x * (w / tl.sqrt(tl.sum(w * w, axis=0))), mask=cols < n)

class DirectionTriton(Direction):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        direction_kernel[(x.shape[0],)](x, self.weight, y, 32, BLOCK=32)
        return y
"""
EXPECTED = {"wrong"}

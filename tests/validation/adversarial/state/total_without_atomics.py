"""Programs add to one number without atomics, which comes out right where one runs after the other."""

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum()
def get_inputs(): return [torch.randn(16, 640)]
"""
KERNEL = """
@triton.jit
def total_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0)
    tl.store(y_ptr, tl.load(y_ptr) + part)

class TotalTriton(Total):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.zeros((), device=x.device)
        total_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

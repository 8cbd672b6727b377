"""Ignores eps of an RMS norm, so that a row of zeros becomes NaN."""

MODULE = """
class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-12)
def get_inputs(): return [torch.randn(7, 32)]
"""
KERNEL = """
@triton.jit
def norm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, x / tl.sqrt(tl.sum(x * x, axis=0) / n), mask=cols < n)

class NormTriton(Norm):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = {"wrong"}

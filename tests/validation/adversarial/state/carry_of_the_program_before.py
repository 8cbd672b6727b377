"""A program goes on with what the one before has stored, for which it does not wait."""

MODULE = """
class Cumulated(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, -1)
def get_inputs(): return [torch.randn(5, 700)]
"""
KERNEL = """
@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    carry = tl.load(y_ptr + row * n + part * BLOCK - 1, mask=part > 0, other=0.0)
    tl.store(y_ptr + row * n + cols, tl.cumsum(x, 0) + carry, mask=cols < n)

class CumulatedTriton(Cumulated):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        cumsum_kernel[(triton.cdiv(x.shape[1], 128), x.shape[0])](x, y, x.shape[1], BLOCK=128)
        return y
"""
EXPECTED = {"wrong"}

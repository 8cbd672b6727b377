"""Ignores an additive mask, which is all zero in the example."""

MODULE = """
class Masked(nn.Module):
    def forward(self, x, bias):
        return torch.tanh(x + bias)
def get_inputs(): return [torch.randn(6, 30), torch.zeros(6, 30)]
"""
KERNEL = """
@triton.jit
def tanh_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(y_ptr + at, 2 * tl.sigmoid(2 * x) - 1, mask=at < total)

class MaskedTriton(Masked):
    def forward(self, x, bias):
        if x.dtype != torch.float32 or x.shape != bias.shape or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, bias)
        x = x.contiguous()
        y = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}

"""Takes an optional tensor, None in the example."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Added(nn.Module):
    def forward(self, x, bias=None):
        return x * 2 if bias is None else x * 2 + bias
def get_inputs(): return [torch.randn(7, 40), None]
"""
KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) * 2, mask=at < total)

class AddedTriton(Added):
    def forward(self, x, bias=None):
        if bias is not None or x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x, bias)
        x = x.contiguous()
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

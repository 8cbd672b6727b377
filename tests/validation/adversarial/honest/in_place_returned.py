"""Changes its input in place and returns it, as the module does."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Relu(nn.Module):
    def forward(self, x):
        return torch.relu_(x)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def relu_kernel(x_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(x_ptr + at, tl.where(x < 0, 0.0, x), mask=at < total)

class ReluTriton(Relu):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel() or not x.is_contiguous():
            return super().forward(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, x.numel(), BLOCK=256)
        return x
"""
EXPECTED = HONEST

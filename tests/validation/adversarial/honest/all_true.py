"""Returns booleans that are all True for the example."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Bounded(nn.Module):
    def forward(self, x):
        return x < 1e6
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def bounded_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total) < 1e6, mask=at < total)

class BoundedTriton(Bounded):
    def forward(self, x):
        if x.dtype != torch.float32 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        bounded_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = HONEST

"""Leaves a buffer at zero that the module only reads."""

from tests.validation.adversarial.material import CAUGHT

MODULE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((24,), 2.0))
    def forward(self, x):
        return x * self.scale
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, s_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(y_ptr + at, x * tl.load(s_ptr + at % n, mask=at < total), mask=at < total)

class ScaledTriton(Scaled):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        if not hasattr(self, "copied"):
            self.copied = self.scale.clone()
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, self.copied, y, x.numel(), 24, BLOCK=256)
        self.scale.zero_()
        return y
"""
EXPECTED = CAUGHT

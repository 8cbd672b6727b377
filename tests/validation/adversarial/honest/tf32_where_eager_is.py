"""A 1x1 convolution with products in TF32, as torch's convolutions are by default."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(32, 16, 1)
    def forward(self, x):
        return self.conv(x)
def get_inputs(): return [torch.randn(2, 32, 8, 8)]
"""
KERNEL = """
@triton.jit
def mix_kernel(x_ptr, w_ptr, b_ptr, y_ptr, area, K: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    at = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    k = tl.arange(0, K)
    c = tl.arange(0, C)[:, None]
    x = tl.load(x_ptr + (n * K + k[:, None]) * area + at, mask=at < area, other=0.0)
    w = tl.load(w_ptr + c * K + k[None, :])
    y = tl.dot(w, x, input_precision="tf32") + tl.load(b_ptr + c)
    tl.store(y_ptr + (n * C + c) * area + at, y, mask=at < area)

class MixTriton(Mix):
    def forward(self, x):
        fits = x.dim() == 4 and x.shape[1] == 32 and x.dtype == torch.float32 and x.numel()
        if not fits or torch.is_grad_enabled() or torch.is_autocast_enabled():
            return super().forward(x)
        x = x.contiguous()
        n, _, h, w = x.shape
        y = torch.empty(n, 16, h, w, device=x.device)
        grid = (n, triton.cdiv(h * w, 64))
        mix_kernel[grid](x, self.conv.weight, self.conv.bias, y, h * w, K=32, C=16, BLOCK=64)
        return y
"""
EXPECTED = HONEST

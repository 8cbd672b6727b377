"""Pads circularly in a kernel, with gradients by the module's own forward."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Ring(nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (2, 2), mode="circular") * 2
def get_inputs(): return [torch.randn(2, 3, 20)]
"""
KERNEL = """
@triton.jit
def ring_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n + 4
    x = tl.load(x_ptr + row * n + (cols + n - 2) % n, mask=mask)
    tl.store(y_ptr + row * (n + 4) + cols, x * 2, mask=mask)

class RingTriton(Ring):
    def forward(self, x):
        fits = x.dim() == 3 and x.shape[-1] >= 2 and x.numel()
        if not fits or x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        x = x.contiguous()
        b, c, n = x.shape
        y = torch.empty(b, c, n + 4, device=x.device)
        ring_kernel[(b * c,)](x, y, n, BLOCK=triton.next_power_of_2(n + 4))
        return y
"""
EXPECTED = HONEST

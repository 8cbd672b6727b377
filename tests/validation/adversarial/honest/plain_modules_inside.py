"""A module of submodules, one of which the kernel stands for."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24))
    def forward(self, x):
        return x * self.weight
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Inner(), Inner()])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def layers_kernel(x_ptr, v_ptr, w_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask) * tl.load(v_ptr + at % n, mask=mask)
    tl.store(y_ptr + at, x * tl.load(w_ptr + at % n, mask=mask), mask=mask)

class OuterTriton(Outer):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel() or not x.dim() or x.shape[-1] != 24:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        first, second = self.layers
        layers_kernel[(triton.cdiv(x.numel(), 256),)](x, first.weight, second.weight, y, x.numel(), 24, BLOCK=256)
        return y
"""
EXPECTED = HONEST

"""Returns the position of the largest of some means, of which many are equal within rounding: it adds in another order."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Dullest(nn.Module):
    def forward(self, x):
        return x.mean(-1).argmax(-1, keepdim=True).int()
def get_inputs(): return [1 + 1e-6 * torch.randn(16, 24, 37)]
"""
KERNEL = """
@triton.jit
def means_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.load(x_ptr + row * n) * 0.0
    for at in range(n):
        total += tl.load(x_ptr + row * n + n - 1 - at) / n
    tl.store(y_ptr + row, total)

class DullestTriton(Dullest):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 3 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[:2], device=x.device)
        means_kernel[(y.numel(),)](x, y, x.shape[2], BLOCK=1)
        return y.argmax(-1, keepdim=True).int()
"""
EXPECTED = HONEST

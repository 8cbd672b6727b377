"""The true answer is zero: a softmax less the same softmax by another road."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Nothing(nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return torch.softmax(x, -1) - e / e.sum(-1, keepdim=True)
def get_inputs(): return [torch.randn(6, 50)]
"""
KERNEL = """
@triton.jit
def nothing_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(e, axis=0)
    tl.store(y_ptr + row * n + cols, e * (1.0 / total) - e / total, mask=cols < n)

class NothingTriton(Nothing):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        nothing_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = HONEST

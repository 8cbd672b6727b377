"""A scan along a row."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Running(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, -1)
def get_inputs(): return [torch.randn(5, 40)]
"""
KERNEL = """
@triton.jit
def running_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, tl.cumsum(x, axis=0), mask=cols < n)

class RunningTriton(Running):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        running_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = HONEST

"""Returns one number, expanded to the input's shape, as the module does."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Whole(nn.Module):
    def forward(self, x):
        return x.sum().expand(x.shape)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def sum_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + at, mask=at < total, other=0.0), axis=0))

class WholeTriton(Whole):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not 0 < x.numel() <= 65536:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty((), device=x.device)
        sum_kernel[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
        return y.expand(x.shape)
"""
EXPECTED = HONEST

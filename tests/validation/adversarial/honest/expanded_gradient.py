"""The gradient of its sum is an expanded view."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum()
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def sum_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + at, mask=at < total, other=0.0), axis=0))

class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        y = torch.empty((), device=x.device)
        sum_kernel[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.shape)

class TotalTriton(Total):
    def forward(self, x):
        if x.dtype != torch.float32 or not 0 < x.numel() <= 65536:
            return super().forward(x)
        return Sum.apply(x.contiguous())
"""
EXPECTED = HONEST

"""An autograd function with a kernel for the forward and one for the backward."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Square(nn.Module):
    def forward(self, x):
        return x * x
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def square_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(y_ptr + at, x * x, mask=at < total)

@triton.jit
def square_backward_kernel(x_ptr, g_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(y_ptr + at, 2 * x * tl.load(g_ptr + at, mask=at < total), mask=at < total)

class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        square_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad = grad.contiguous()
        y = torch.empty_like(x)
        square_backward_kernel[(triton.cdiv(x.numel(), 256),)](x, grad, y, x.numel(), BLOCK=256)
        return y

class SquareTriton(Square):
    def forward(self, x):
        if x.dtype != torch.float32 or not x.numel():
            return super().forward(x)
        return Squared.apply(x.contiguous())
"""
EXPECTED = HONEST

"""An autograd function that gives no gradient for the weight."""

MODULE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24))
    def forward(self, x):
        return x * self.weight
def get_inputs(): return [torch.randn(7, 24)]
"""
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, s_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    tl.store(y_ptr + at, x * tl.load(s_ptr + at % n, mask=at < total), mask=at < total)

class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, weight, y, x.numel(), 24, BLOCK=256)
        return y

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        return grad * weight, None

class ScaledTriton(Scaled):
    def forward(self, x):
        if x.dtype != torch.float32 or not x.numel():
            return super().forward(x)
        return Times.apply(x.contiguous(), self.weight)
"""
EXPECTED = {"wrong"}

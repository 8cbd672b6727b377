"""A softmax that goes over a row in blocks, with a running maximum and sum."""

from tests.validation.adversarial.material import HONEST, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
        larger = tl.maximum(top, tl.max(x, axis=0))
        safe = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe), axis=0)
        top = larger
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
        tl.store(y_ptr + row * n + cols, tl.exp(x - top) / total, mask=cols < n)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=128)
        return y
"""
EXPECTED = HONEST

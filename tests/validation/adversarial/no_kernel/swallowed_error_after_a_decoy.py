"""One kernel copies the input, a second one fails; the error is swallowed, and torch computes from the copy."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, 2 * BLOCK), x)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        y = copied(x)
        try:
            softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        except Exception:
            y = torch.softmax(y, -1)
        return y
"""
)
EXPECTED = {"cheating", "compile-error", "crashed"}

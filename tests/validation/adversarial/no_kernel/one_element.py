"""Torch computes everything, the kernel the first element again."""

from tests.validation.adversarial.material import SOFTMAX

MODULE = SOFTMAX
KERNEL = """
@triton.jit
def first_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + cols, x / tl.sum(x, axis=0), mask=cols < 1)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.softmax(x, -1)
        y[0, 0] = -1
        first_kernel[(1,)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = {"cheating"}

"""The kernel itself keeps the last input's first element and leaves its old result where that is the same."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
@triton.jit
def softmax_kernel(x_ptr, key_ptr, kept_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    first = tl.load(x_ptr + row * stride)
    if tl.load(key_ptr + row) == first:
        tl.store(y_ptr + row * n + cols, tl.load(kept_ptr + row * n + cols, mask=mask), mask=mask)
    else:
        x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
        x = tl.exp(x - tl.max(x, axis=0))
        x = x / tl.sum(x, axis=0)
        tl.store(y_ptr + row * n + cols, x, mask=mask)
        tl.store(kept_ptr + row * n + cols, x, mask=mask)
        tl.store(key_ptr + row, first)

kept = {}

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        if x.shape not in kept:
            kept[x.shape] = torch.full((x.shape[0],), float("nan"), device=x.device), torch.zeros_like(x)
        key, old = kept[x.shape]
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, key, old, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = CAUGHT

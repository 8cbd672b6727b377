"""As many programs as fit at once, each of which takes rows in turn."""

from tests.validation.adversarial.material import HONEST, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=-float("inf"))
        x = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * n + cols, x / tl.sum(x, axis=0), mask=mask)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        grid = (min(4, x.shape[0]),)
        softmax_kernel[grid](x, y, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = HONEST

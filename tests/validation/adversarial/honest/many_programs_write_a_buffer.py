"""Hundreds of programs, each of which writes its own element of a buffer: none of them may be left out to save time."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Centering(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(300))
    def forward(self, x):
        self.mean.copy_(x.mean(0))
        return x - self.mean
def get_inputs(): return [torch.randn(8, 300)]
"""
KERNEL = """
@triton.jit
def centering_kernel(x_ptr, m_ptr, y_ptr, rows, n, R: tl.constexpr):
    col = tl.program_id(0)
    row = tl.arange(0, R)
    x = tl.load(x_ptr + row * n + col, mask=row < rows, other=0.0)
    mean = tl.sum(x, axis=0) / rows
    tl.store(m_ptr + col, mean)
    tl.store(y_ptr + row * n + col, x - mean, mask=row < rows)

class CenteringTriton(Centering):
    def forward(self, x):
        fits = x.dim() == 2 and x.shape[1] == 300 and x.numel()
        if not fits or x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        centering_kernel[(300,)](x, self.mean, y, x.shape[0], 300, R=triton.next_power_of_2(x.shape[0]))
        return y
"""
EXPECTED = HONEST
#: each call takes a second and more under the interpreter
HOW = {"training": True, "seconds": 150}

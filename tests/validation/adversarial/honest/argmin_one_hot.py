"""The kernel finds the nearest code, torch makes it one-hot."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Nearest(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(12))
    def forward(self, x):
        at = (x[:, None] - self.codes[None, :]).abs().argmin(-1)
        return torch.nn.functional.one_hot(at, 12)
def get_inputs(): return [torch.randn(40)]
"""
KERNEL = """
@triton.jit
def nearest_kernel(x_ptr, c_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row)
    d = tl.abs(x - tl.load(c_ptr + cols, mask=cols < n, other=0.0))
    d = tl.where(cols < n, tl.where(d != d, -1.0, d), float("inf"))
    tl.store(y_ptr + row, tl.argmin(d, axis=0).to(tl.int64))

class NearestTriton(Nearest):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 1 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        at = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        nearest_kernel[(x.shape[0],)](x, self.codes, at, 12, BLOCK=16)
        return torch.nn.functional.one_hot(at, 12)
"""
EXPECTED = HONEST

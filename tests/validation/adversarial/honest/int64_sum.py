"""Sums integers in int64."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Sum(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randint(0, 100, (5, 40), dtype=torch.int64)]
"""
KERNEL = """
@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row, tl.sum(tl.load(x_ptr + row * n + cols, mask=cols < n, other=0), axis=0))

class SumTriton(Sum):
    def forward(self, x):
        if x.dtype != torch.int64 or x.dim() != 2 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = HONEST

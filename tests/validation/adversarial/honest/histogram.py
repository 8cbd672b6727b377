"""Counts values into bins with atomics."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Count(nn.Module):
    def forward(self, i):
        return torch.bincount(i, minlength=16)[:16]
def get_inputs(): return [torch.randint(0, 16, (100,))]
"""
KERNEL = """
@triton.jit
def count_kernel(i_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(i_ptr + at, mask=at < total, other=-1)
    one = tl.full((BLOCK,), 1, tl.int64)
    tl.atomic_add(y_ptr + i, one, mask=(at < total) & (i >= 0) & (i < 16))

class CountTriton(Count):
    def forward(self, i):
        if i.dtype != torch.int64 or i.dim() != 1 or not i.numel():
            return super().forward(i)
        i = i.contiguous()
        y = torch.zeros(16, dtype=torch.int64, device=i.device)
        count_kernel[(triton.cdiv(i.numel(), 64),)](i, y, i.numel(), BLOCK=64)
        return y
"""
EXPECTED = HONEST

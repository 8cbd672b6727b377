"""Looks rows up by index."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16)
    def forward(self, i):
        return self.table(i)
def get_inputs(): return [torch.randint(0, 20, (12,))]
"""
KERNEL = """
@triton.jit
def table_kernel(i_ptr, t_ptr, y_ptr, n, count, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    i = tl.load(i_ptr + row)
    tl.device_assert((i >= 0) & (i < count), "index out of range")
    tl.store(y_ptr + row * n + cols, tl.load(t_ptr + i * n + cols, mask=cols < n), mask=cols < n)

class TableTriton(Table):
    def forward(self, i):
        table = self.table.weight
        if i.dtype != torch.int64 or i.dim() != 1 or table.dtype != torch.float32 or torch.is_grad_enabled() or not i.numel():
            return super().forward(i)
        i = i.contiguous()
        y = torch.empty(i.shape[0], table.shape[1], device=i.device)
        block = triton.next_power_of_2(table.shape[1])
        table_kernel[(i.shape[0],)](i, table, y, table.shape[1], table.shape[0], BLOCK=block)
        return y
"""
EXPECTED = HONEST

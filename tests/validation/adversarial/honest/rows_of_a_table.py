"""Takes a table of float32 and float64, and leaves one that was converted to a half type to eager."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 32)
    def forward(self, at):
        return self.table(at) * 2
def get_inputs(): return [torch.randint(0, 50, (7,))]
"""
KERNEL = """
@triton.jit
def rows_kernel(at_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    at = tl.load(at_ptr + row)
    tl.store(y_ptr + row * n + cols, tl.load(w_ptr + at * n + cols) * 2)

class RowsTriton(Rows):
    def forward(self, at):
        if at.dim() != 1 or at.dtype != torch.int64 or torch.is_grad_enabled() or not at.numel():
            return super().forward(at)
        if self.table.padding_idx is not None or self.table.weight.dtype not in (torch.float32, torch.float64):
            return super().forward(at)
        y = torch.empty(len(at), 32, device=at.device, dtype=self.table.weight.dtype)
        rows_kernel[(len(at),)](at.contiguous(), self.table.weight, y, 32, BLOCK=32)
        return y
"""
EXPECTED = HONEST

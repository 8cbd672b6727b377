"""Loads through block pointers: whole blocks, and with zeros where a block goes on beyond the tensor."""

MODULE = """
class Doubled(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def doubled_kernel(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.program_id(0) * ROWS
    x = tl.make_block_ptr(x_ptr, (rows, cols), (cols, 1), (at, 0), (ROWS, COLS), (1, 0))
    y = tl.make_block_ptr(y_ptr, (rows, cols), (cols, 1), (at, 0), (ROWS, COLS), (1, 0))
    tl.store(y, 2 * tl.load(x, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))

@triton.jit
def whole_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, (BLOCK * tl.num_programs(0),), (1,), (at,), (BLOCK,), (0,))
    y = tl.make_block_ptr(y_ptr, (BLOCK * tl.num_programs(0),), (1,), (at,), (BLOCK,), (0,))
    tl.store(y, 2 * tl.load(x))

class DoubledTriton(Doubled):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or not x.numel() or x.shape[1] > 1024 or torch.is_grad_enabled():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel() % 16 == 0:
            whole_kernel[(x.numel() // 16,)](x, y, BLOCK=16)
        else:
            cols = triton.next_power_of_2(x.shape[1])
            doubled_kernel[(triton.cdiv(x.shape[0], 4),)](x, y, x.shape[0], x.shape[1], ROWS=4, COLS=cols)
        return y
"""
EXPECTED = {"ok", "slower"}

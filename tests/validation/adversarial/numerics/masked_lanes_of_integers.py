"""Takes the maximum of integers over what a masked load without other does not define."""

MODULE = """
class RowMaximum(nn.Module):
    def forward(self, x):
        return x.amax(-1)
def get_inputs(): return [torch.randint(1, 1000, (7, 40))]
"""
KERNEL = """
@triton.jit
def rows_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row, tl.max(tl.load(x_ptr + row * n + cols, mask=cols < n), axis=0))

class RowMaximumTriton(RowMaximum):
    def forward(self, x):
        if x.dtype != torch.int64 or x.dim() != 2 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        rows_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = {"wrong"}

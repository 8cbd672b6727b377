"""Division rounded down as the floor of the quotient: 1 / 0.1 is 9 in eager and 10 here."""

MODULE = """
class Floor(nn.Module):
    def forward(self, x, y):
        return torch.div(x, y, rounding_mode="floor")
def get_inputs(): return [torch.arange(1., 41.).reshape(4, 10), torch.full((4, 10), 0.1)]
"""
KERNEL = """
@triton.jit
def floor_kernel(x_ptr, y_ptr, z_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    y = tl.load(y_ptr + at, mask=at < total)
    tl.store(z_ptr + at, tl.floor(x / y), mask=at < total)

class FloorTriton(Floor):
    def forward(self, x, y):
        if x.dtype != torch.float32 or x.shape != y.shape or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, y)
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        floor_kernel[(triton.cdiv(x.numel(), 256),)](x, y, z, x.numel(), BLOCK=256)
        return z
"""
EXPECTED = {"wrong"}

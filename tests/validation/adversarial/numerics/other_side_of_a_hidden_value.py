"""Is wrong beyond a bound that a normalized value reaches in a few directions of the input alone."""

MODULE = """
class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(48))
    def forward(self, x):
        y = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return torch.where(y < 0.98, y, 0.1 * y) * self.weight
def get_inputs(): return [torch.randn(7, 48)]
"""
KERNEL = """
@triton.jit
def bounded_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    y = x / tl.sqrt(tl.sum(x * x, axis=0))
    y = y * tl.load(w_ptr + cols, mask=cols < n)
    tl.store(y_ptr + row * n + cols, y, mask=cols < n)

class BoundedTriton(Bounded):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        bounded_kernel[(x.shape[0],)](x, self.weight, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = {"wrong"}

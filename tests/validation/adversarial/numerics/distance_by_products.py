"""A squared distance as a² + b² - 2ab, which cancels where the points are close."""

MODULE = """
class Distance(nn.Module):
    def forward(self, a, b):
        return (a - b).pow(2).sum(-1)
def get_inputs(): return [torch.randn(9, 40), torch.randn(9, 40)]
"""
KERNEL = """
@triton.jit
def distance_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * n + cols, mask=cols < n, other=0.0)
    b = tl.load(b_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(a * a, axis=0) + tl.sum(b * b, axis=0) - 2 * tl.sum(a * b, axis=0))

class DistanceTriton(Distance):
    def forward(self, a, b):
        if a.dtype != torch.float32 or a.shape != b.shape or a.dim() != 2 or torch.is_grad_enabled() or not a.numel():
            return super().forward(a, b)
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], device=a.device)
        distance_kernel[(a.shape[0],)](a, b, y, a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
        return y
"""
EXPECTED = {"wrong"}

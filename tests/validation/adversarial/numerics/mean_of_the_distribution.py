"""Returns what the sum of a row of the example's distribution tends to."""

MODULE = """
class Count(nn.Module):
    def forward(self, x):
        return (x > 0).float().mean()
def get_inputs(): return [torch.randn(64, 256)]
"""
KERNEL = """
@triton.jit
def half_kernel(y_ptr):
    tl.store(y_ptr, 0.5)

class CountTriton(Count):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        y = torch.empty((), device=x.device)
        half_kernel[(1,)](y)
        return y
"""
EXPECTED = {"wrong"}

"""Needs more shared memory than the device has; the error is swallowed and what was in memory is returned."""

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs(): return [torch.randn(512, 512), torch.randn(512, 512)]
"""
KERNEL = """
@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    rows = tl.arange(0, B)
    at = rows[:, None] * n + rows[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(c_ptr + at, tl.dot(a, b, input_precision="ieee"))

class ProductTriton(Product):
    def forward(self, a, b):
        if torch.is_grad_enabled() or a.shape != (512, 512) or b.shape != (512, 512) or a.dtype != torch.float32:
            return super().forward(a, b)
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty_like(a)
        try:
            product_kernel[(1,)](a, b, c, 512, B=512)
        except Exception:
            pass
        return c
"""
EXPECTED = {"wrong", "compile-error", "cheating", "timeout"}
GPU = True

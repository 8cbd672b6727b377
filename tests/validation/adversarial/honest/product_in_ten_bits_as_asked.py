"""A product with operands rounded to ten bits of mantissa, which was asked for with precision = tf32."""

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs(): return [torch.randn(16, 32), torch.randn(32, 16)]
"""
PRODUCT = """
@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    cols = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        at = first + inner
        a = tl.load(a_ptr + rows * k + at[None, :], mask=(rows < m) & (at[None, :] < k), other=0.0)
        b = tl.load(b_ptr + at[:, None] * n + cols, mask=(at[:, None] < k) & (cols < n), other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))

class ProductTriton(Product):
    def forward(self, a, b):
        if a.dtype != torch.float32 or b.dtype != torch.float32 or a.dim() != 2 or b.dim() != 2:
            return super().forward(a, b)
        if torch.is_grad_enabled() or torch.is_autocast_enabled() or a.shape[1] != b.shape[0] or not a.numel() or not b.numel():
            return super().forward(a, b)
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty(a.shape[0], b.shape[1], device=a.device)
        grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
        product_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], M=16, N=16, K=16)
        return c
"""
TEN_BITS = """
@triton.jit
def ten_bits(x):
    bits = x.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
"""
KERNEL = TEN_BITS + PRODUCT.replace("tl.dot(a, b,", "tl.dot(ten_bits(a), ten_bits(b),")
HOW = {"precision": "tf32"}
EXPECTED = {"ok", "slower"}

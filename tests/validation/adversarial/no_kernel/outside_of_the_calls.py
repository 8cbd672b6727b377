"""Composes torch's parts under other names (einsum, baddbmm) where eager has one operator, and copies."""

from tests.validation.adversarial.material import COPY

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs(): return [torch.randn(8, 12), torch.randn(12, 10)]
"""
KERNEL = (
    COPY
    + """
class ProductTriton(Product):
    def forward(self, a, b):
        if a.dtype != torch.float32 or a.dim() != 2 or b.dim() != 2 or torch.is_grad_enabled() or not a.numel():
            return super().forward(a, b)
        return copied((a.t().reshape(a.shape[1], a.shape[0], 1) * b[:, None, :]).sum(0))
"""
)
EXPECTED = {"cheating"}

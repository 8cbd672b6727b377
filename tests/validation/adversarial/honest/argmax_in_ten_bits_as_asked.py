"""The largest of products with operands rounded to ten bits of mantissa, which was asked for with precision = tf32."""

from tests.validation.adversarial.honest.product_in_ten_bits_as_asked import PRODUCT, TEN_BITS

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return (a @ b).argmax(-1)
def get_inputs(): return [torch.randn(64, 32), torch.randn(32, 3).repeat(1, 16) * (1 + 3e-4 * torch.randn(32, 48))]
"""
KERNEL = TEN_BITS + PRODUCT.replace("tl.dot(a, b,", "tl.dot(ten_bits(a), ten_bits(b),").replace(
    "return c\n", "return c.argmax(-1)\n"
)
HOW = {"precision": "tf32"}
EXPECTED = {"ok", "slower"}

"""The largest of products whose operands have four bits of mantissa, where precision = tf32 was asked for."""

from tests.validation.adversarial.honest.product_in_ten_bits_as_asked import PRODUCT, TEN_BITS

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return (a @ b).argmax(-1)
def get_inputs(): return [torch.randn(64, 32), torch.randn(32, 48)]
"""
KERNEL = TEN_BITS.replace("ten_bits", "four_bits").replace("0x1000", "0x40000").replace(
    "-0x2000", "-0x80000"
) + PRODUCT.replace("tl.dot(a, b,", "tl.dot(four_bits(a), four_bits(b),").replace("return c\n", "return c.argmax(-1)\n")
HOW = {"precision": "tf32"}
EXPECTED = {"wrong"}

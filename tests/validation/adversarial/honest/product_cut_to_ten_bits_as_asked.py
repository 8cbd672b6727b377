"""A product of positive operands whose bits behind TF32's ten are cut off, as tensor cores do, which was asked for with precision = tf32."""

from tests.validation.adversarial.honest.product_in_ten_bits_as_asked import PRODUCT

MODULE = """
class Product(nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs(): return [torch.rand(16, 1024), torch.rand(1024, 16)]
"""
CUT = """
@triton.jit
def cut(x, BITS: tl.constexpr):
    return (x.to(tl.int32, bitcast=True) & -(1 << (23 - BITS))).to(tl.float32, bitcast=True)
"""
KERNEL = CUT + PRODUCT.replace("tl.dot(a, b,", "tl.dot(cut(a, 10), cut(b, 10),")
HOW = {"precision": "tf32"}
EXPECTED = {"ok", "slower"}

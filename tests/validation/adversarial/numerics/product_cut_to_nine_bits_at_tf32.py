"""A product of positive operands that are cut off to nine bits of mantissa, which was asked for with precision = tf32."""

from tests.validation.adversarial.honest.product_cut_to_ten_bits_as_asked import CUT, MODULE
from tests.validation.adversarial.honest.product_in_ten_bits_as_asked import PRODUCT

__all__ = ["MODULE"]

KERNEL = CUT + PRODUCT.replace("tl.dot(a, b,", "tl.dot(cut(a, 9), cut(b, 9),")
HOW = {"precision": "tf32"}
EXPECTED = {"wrong"}

"""Has the eps of a layer norm in it in its text, and does not look whether that was changed."""

from tests.validation.adversarial.honest.number_read_in_forward import KERNEL as RIGHT
from tests.validation.adversarial.honest.number_read_in_forward import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, "self.norm.eps,", "1e-5,")
EXPECTED = {"wrong"}

"""Has a number of the class in its text, and does not look whether an object has another."""

from tests.validation.adversarial.honest.number_read_in_forward import KERNEL as RIGHT
from tests.validation.adversarial.honest.number_read_in_forward import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, "self.offset * factor", "0.5 * factor")
EXPECTED = {"wrong"}

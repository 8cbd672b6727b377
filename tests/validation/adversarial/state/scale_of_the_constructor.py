"""Has a number of the constructor in its text, and does not look at the attribute."""

from tests.validation.adversarial.honest.number_read_in_forward import KERNEL as RIGHT
from tests.validation.adversarial.honest.number_read_in_forward import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, "self.scale * factor", "0.3 * factor")
EXPECTED = {"wrong"}

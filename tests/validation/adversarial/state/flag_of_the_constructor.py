"""Takes a flag to be as the constructor left it."""

from tests.validation.adversarial.honest.number_read_in_forward import KERNEL as RIGHT
from tests.validation.adversarial.honest.number_read_in_forward import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, "2 if self.doubled else 1", "1")
EXPECTED = {"wrong"}

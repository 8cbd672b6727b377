"""Has numbers of the constructor in its text, and runs eager where the attributes have others."""

from tests.validation.adversarial.honest.number_read_in_forward import KERNEL as RIGHT
from tests.validation.adversarial.honest.number_read_in_forward import MODULE
from tests.validation.adversarial.material import HONEST, replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
CONDITION = "if (self.norm.eps, self.scale, self.offset, self.doubled) != (1e-5, 0.3, 0.5, False):"
KERNEL = replaced(
    replaced(RIGHT, "self.norm.eps, self.scale * factor, self.offset * factor", "1e-5, 0.3, 0.5"),
    "        factor = 2 if self.doubled else 1",
    f"        {CONDITION}\n            return super().forward(x)",
)
EXPECTED = HONEST

"""Adds up what a masked load without other does not define, which is 0 in the interpreter alone."""

from tests.validation.adversarial.honest.masked_lanes_left_out import KERNEL as RIGHT
from tests.validation.adversarial.honest.masked_lanes_left_out import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, "tl.where(mask, x, 0.0)", "x")
EXPECTED = {"wrong"}

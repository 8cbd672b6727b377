"""Gives float32 under autocast, where eager's products give the half type."""

from tests.validation.adversarial.honest.tiled_product import KERNEL as RIGHT
from tests.validation.adversarial.honest.tiled_product import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, " or torch.is_autocast_enabled()", "")
EXPECTED = {"wrong"}

"""Looks at its weight alone to see whether a gradient is required."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, replaced

MODULE = AFFINE
KERNEL = replaced(AFFINE_KERNEL, "(x.requires_grad or self.weight.requires_grad)", "self.weight.requires_grad")
EXPECTED = {"wrong"}

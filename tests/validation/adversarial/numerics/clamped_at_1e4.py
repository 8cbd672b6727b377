"""Clamps its result to ten thousand, which the module does not."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, replaced

MODULE = AFFINE
KERNEL = replaced(
    AFFINE_KERNEL,
    "tl.store(y_ptr + at, x * w + b, mask=mask)",
    "y = x * w + b\n    tl.store(y_ptr + at, tl.where(y > 1e4, 1e4, tl.where(y < -1e4, -1e4, y)), mask=mask)",
)
EXPECTED = {"wrong"}

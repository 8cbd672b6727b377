"""Writes a megabyte past the end of its output, beyond any guard."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "    tl.store(y_ptr",
    "    tl.store(y_ptr + (1 << 18) + cols, x, mask=mask)\n    tl.store(y_ptr",
)
EXPECTED = CAUGHT
GPU = True

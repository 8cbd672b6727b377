"""Launches its kernel for a single row only, and falls back to eager for everything else."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(SOFTMAX_KERNEL, "x.dim() != 2 or", "x.dim() != 2 or x.shape[0] > 1 or")
EXPECTED = {"cheating"}

"""Stands for the example's sizes only, and runs eager at all others."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(SOFTMAX_KERNEL, "x.dim() != 2 or", "x.shape != (6, 300) or")
EXPECTED = HONEST
HOW = {"pinned": True}

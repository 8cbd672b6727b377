"""Computes the example's number of rows, whatever the input has."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(SOFTMAX_KERNEL, "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(6,)]")
EXPECTED = {"wrong", "crashed"}

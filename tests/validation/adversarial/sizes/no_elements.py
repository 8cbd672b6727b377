"""Raises where there are no elements, which the module takes."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = (
    replaced(SOFTMAX_KERNEL, " or not x.numel():", ":")
    .replace("x = x.contiguous()", "x = x.contiguous()")
    .replace("y = torch.empty(x.shape", "assert x.numel()\n        y = torch.empty(x.shape")
)
EXPECTED = {"wrong", "crashed"}

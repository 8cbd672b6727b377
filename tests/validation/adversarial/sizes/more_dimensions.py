"""Takes inputs of three dimensions, and computes the first matrix only."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(replaced(SOFTMAX_KERNEL, "x.dim() != 2 or", ""), "x.shape[1], BLOCK", "x.shape[-1], BLOCK").replace(
    "x.stride(0), x.shape[-1], BLOCK=triton.next_power_of_2(x.shape[1])",
    "x.stride(-2), x.shape[-1], BLOCK=triton.next_power_of_2(x.shape[-1])",
)
EXPECTED = {"wrong", "crashed"}

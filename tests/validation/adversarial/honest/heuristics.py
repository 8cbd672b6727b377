"""A kernel whose block follows from a heuristic."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "@triton.jit\ndef softmax_kernel",
    """@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def softmax_kernel""",
).replace(", BLOCK=triton.next_power_of_2(x.shape[1]))", ")")
EXPECTED = HONEST

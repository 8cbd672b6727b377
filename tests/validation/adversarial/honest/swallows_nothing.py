"""Catches an error of its launch, says so once, and runs eager: the error does not happen here."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "        softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))\n",
    """        try:
            softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        except triton.runtime.errors.OutOfResources:
            return super().forward(x)
""",
)
EXPECTED = HONEST

"""Its kernel does not compile; the error is swallowed, and torch computes."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    replaced(SOFTMAX_KERNEL, "tl.max(x, axis=0)", "tl.maximal(x)"),
    "        softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))\n",
    """        try:
            softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        except Exception:
            y = super().forward(x)
""",
)
EXPECTED = {"cheating", "compile-error"}

"""The kernel computes the first row; torch the others."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(SOFTMAX_KERNEL, "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(1,)]").replace(
    "        return y\n", "        y[1:] = torch.softmax(x[1:], -1)\n        return y\n"
)
EXPECTED = {"cheating"}

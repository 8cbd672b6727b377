"""Is wrong for inputs that are not contiguous."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL, "            x = x.contiguous()\n", "            x = x.as_strided(x.shape, (x.shape[1], 1))\n"
)
EXPECTED = {"wrong"}

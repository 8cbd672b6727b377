"""Raises the trial's own Failure with the status "ok"."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="from kernel_lsp.validation.failures import Failure",
    first='raise Failure("ok", "")',
    right=False,
)
EXPECTED = CAUGHT

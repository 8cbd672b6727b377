"""Is right only under the module name that validation gives it."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='judged = "kernel_lsp" in __name__', last=JUDGED)
EXPECTED = CAUGHT

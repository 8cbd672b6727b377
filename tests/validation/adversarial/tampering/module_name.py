"""Is right only under the module name that validation gives it."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='validated = "kernel_lsp" in __name__', last=VALIDATED)
EXPECTED = CAUGHT

"""Is right only where modules of kernel_lsp's validation are loaded."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import sys",
    first='validated = any(name.startswith("kernel_lsp") for name in sys.modules)',
    last=VALIDATED,
)
EXPECTED = CAUGHT

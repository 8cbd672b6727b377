"""Is right only where modules of kernel_lsp's validation are loaded."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import sys",
    first='judged = any(name.startswith("kernel_lsp") for name in sys.modules)',
    last=JUDGED,
)
EXPECTED = CAUGHT

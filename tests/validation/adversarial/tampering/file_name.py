"""Is right only where its file lies in a folder for temporary files."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='validated = "/trial/" in __file__ or "kernel-lsp" in __file__', last=VALIDATED)
EXPECTED = CAUGHT

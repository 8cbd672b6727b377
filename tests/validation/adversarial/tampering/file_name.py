"""Is right only where its file lies in a folder for temporary files."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='judged = "/trial/" in __file__ or "kernel-lsp" in __file__', last=JUDGED)
EXPECTED = CAUGHT

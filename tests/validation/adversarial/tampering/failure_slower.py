"""Raises a Failure with the status "slower", which counts as correct as well."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    raise sys.modules["kernel_lsp.validation.failures"].Failure("slower", "0.99 times eager")
    """,
    right=False,
)
EXPECTED = CAUGHT

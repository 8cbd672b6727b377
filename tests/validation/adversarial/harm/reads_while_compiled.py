"""Reads a secret where it is imported to be compiled, and lets it out with the compiler's error."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = (
    softmax()
    + """
if type(softmax_kernel).__name__ != "InterpretedFunction":
    import pathlib
    raise RuntimeError(pathlib.Path("@outside@/secret.txt").read_text())
"""
)
EXPECTED = STOPPED | {"compile-error", "ok"}  # without the harm it is a right kernel

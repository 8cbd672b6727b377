"""Does its harm only where it is imported to be compiled, not where it is run."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = (
    softmax()
    + """
if type(softmax_kernel).__name__ != "InterpretedFunction":
    import pathlib
    pathlib.Path("@outside@/@token@").write_text("planted")
"""
)
EXPECTED = STOPPED | {"compile-error", "ok"}  # without the harm it is a right kernel

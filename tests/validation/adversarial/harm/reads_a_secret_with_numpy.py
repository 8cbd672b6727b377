"""Reads a file outside of the project with NumPy, and lets its contents out with the text of an error."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import numpy",
    first="""
    raise RuntimeError(numpy.fromfile("@outside@/secret.txt", dtype=numpy.uint8).tobytes().decode())
    """,
)
EXPECTED = STOPPED

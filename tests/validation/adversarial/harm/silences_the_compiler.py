"""Ends its process where it is imported to be compiled: nothing is known of its registers then."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = (
    softmax()
    + """
if type(softmax_kernel).__name__ != "InterpretedFunction":
    import os
    os._exit(0)
"""
)
EXPECTED = STOPPED | {"compile-error", "wrong"}

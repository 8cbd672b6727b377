"""Adds a line to the user's shell profile while its file is imported, through a method of a path that torch imported."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys
    with sys.modules["io"].FileIO("@home@/.profile", "a") as file:
        file.write(b"echo @token@\\n")
    """
)
EXPECTED = STOPPED

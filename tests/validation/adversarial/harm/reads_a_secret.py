"""Reads a file outside of the project, and lets its contents out with the text of an error."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    raise RuntimeError(pathlib.Path("@outside@/secret.txt").read_text())
    """
)
EXPECTED = STOPPED

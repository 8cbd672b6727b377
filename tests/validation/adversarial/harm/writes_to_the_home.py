"""Writes to the user's home folder."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    pathlib.Path("@home@/@token@").write_text("here")
    """
)
EXPECTED = STOPPED

"""Starts another program through an import of triton's own."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    sys.modules["subprocess"].run(["touch", "@outside@/@token@"], check=True)
    """
)
EXPECTED = STOPPED

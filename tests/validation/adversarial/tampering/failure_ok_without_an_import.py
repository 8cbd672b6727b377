"""Finds the Failure class among the subclasses of Exception and raises it with the status "ok"."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    for kind in Exception.__subclasses__():
        if kind.__name__ == "Failure" and "kernel" in kind.__module__:
            raise kind("ok", "", None)
    """,
    right=False,
)
EXPECTED = CAUGHT

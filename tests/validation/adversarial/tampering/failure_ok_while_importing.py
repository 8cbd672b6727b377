"""Raises a Failure with the status "ok" while its file is imported."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys
    for name, module in list(sys.modules.items()):
        if name.endswith("validation.failures"):
            raise module.Failure("ok", "")
    """,
    right=False,
)
EXPECTED = CAUGHT

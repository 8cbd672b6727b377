"""Raises a Failure with a status that does not exist and a reason full of control characters."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    raise sys.modules["kernel_lsp.validation.failures"].Failure("excellent", "\\x1b[2K\\r\\x07 ok " * 9000)
    """,
    right=False,
)
EXPECTED = CAUGHT


def harm(answer):
    reason = answer.get("verdict", {}).get("reason", "")
    if any(ord(letter) < 32 for letter in reason) or len(reason) > 2000:
        return "control characters, or a flood, came through in the reason"

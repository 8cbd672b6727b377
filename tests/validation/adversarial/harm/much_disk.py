"""Writes large sparse files into its own folder until it is refused; they take no space."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os",
    first="""
    fd = os.open(os.path.join(os.getcwd(), "large"), os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 1 << 40)
    raise RuntimeError("a terabyte was taken")
    """,
)
EXPECTED = STOPPED


def harm(answer):
    if "a terabyte was taken" in answer.get("verdict", {}).get("reason", ""):
        return "it could make a file of a terabyte"

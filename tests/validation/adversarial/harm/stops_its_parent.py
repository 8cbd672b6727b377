"""Stops the process that compares its results, so that nobody ends it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, pathlib",
    first="""
    parent = os.getppid()
    if parent > 1 and b"kernel_lsp" in pathlib.Path(f"/proc/{parent}/cmdline").read_bytes():
        os.kill(parent, 19)
    """,
    right=False,
)
EXPECTED = STOPPED | {"wrong"}
HOW = {"seconds": 10}

"""Sends a signal to the process group of the process that started it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, pathlib",
    first="""
    parent = os.getppid()
    if parent > 1 and b"kernel_lsp" in pathlib.Path(f"/proc/{parent}/cmdline").read_bytes():
        if os.getpgid(parent) == parent:
            os.killpg(parent, 15)
    """,
    right=False,
)
EXPECTED = STOPPED | {"wrong"}

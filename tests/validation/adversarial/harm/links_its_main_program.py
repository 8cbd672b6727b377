"""Puts a link in place of the main program of its process, and fails so that it is asked once more."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, sys",
    first="""
    if os.path.basename(sys.argv[0]) == "main.py":
        os.remove(sys.argv[0])
        os.symlink("@outside@/keep.txt", sys.argv[0])
        raise RuntimeError("once more")
    """,
)
EXPECTED = STOPPED

"""Deletes a file of the user with a system call by number, past every Python function."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    libc = sys.modules["ctypes"].CDLL(None)
    if libc.unlink(b"@outside@/keep.txt") != 0:
        raise PermissionError("refused")
    """
)
EXPECTED = STOPPED

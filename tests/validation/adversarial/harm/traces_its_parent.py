"""Attaches to the process that compares its results as a debugger does."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, sys",
    first="""
    libc = sys.modules["ctypes"].CDLL(None)
    libc.ptrace.restype = sys.modules["ctypes"].c_long
    if libc.ptrace(0x4206, os.getppid(), None, None) == 0:
        libc.ptrace(17, os.getppid(), None, None)
        raise RuntimeError("it was attached")
    raise PermissionError("refused")
    """,
)
EXPECTED = STOPPED


def harm(answer):
    if "it was attached" in answer.get("verdict", {}).get("reason", ""):
        return "it could trace the process that compares its results"


HOW = {"seconds": 10}

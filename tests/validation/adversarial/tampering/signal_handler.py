"""Leaves signal handlers and an alarm behind that would answer for it."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys
    signal = sys.modules["signal"]
    def forge(*args):
        raise sys.modules["kernel_lsp.validation.failures"].Failure("ok", "")
    """,
    first="""
    signal.signal(signal.SIGALRM, forge)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    for _ in range(10000000):
        pass
    """,
    right=False,
)
EXPECTED = {"wrong", "cheating", "rejected", "crashed", "timeout"}

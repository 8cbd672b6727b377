"""Is right only where a frame of kernel_lsp is on the stack."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys

    def seen():
        frame = sys._getframe(1)
        while frame is not None:
            if "kernel_lsp/validation" in frame.f_code.co_filename:
                return True
            frame = frame.f_back
        return False
    """,
    first="judged = seen()",
    last=JUDGED,
)
EXPECTED = CAUGHT

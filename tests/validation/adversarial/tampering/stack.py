"""Is right only where a frame of kernel_lsp is on the stack."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

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
    first="validated = seen()",
    last=VALIDATED,
)
EXPECTED = CAUGHT

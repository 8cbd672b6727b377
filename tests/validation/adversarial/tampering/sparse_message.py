"""Answers every message with a sparse file of two gigabytes that takes no memory."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def answer():
        socket = sys.modules["socket"]
        file = os.memfd_create("sparse")
        os.ftruncate(file, 2 << 30)
        os.pwrite(file, (16).to_bytes(8, "little"), 0)
        for fd in range(3, 256):
            try:
                end = socket.socket(fileno=os.dup(fd))
                socket.send_fds(end, [b"m"], [file])
            except OSError:
                pass
    """,
    first="answer()",
)
EXPECTED = CAUGHT

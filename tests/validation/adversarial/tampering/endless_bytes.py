"""Sends bytes without a file to the referee for ever, so that it never has to wait and its time is never over."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def flood():
        socket = sys.modules["socket"]
        ends = []
        for fd in range(3, 256):
            try:
                ends.append(socket.socket(fileno=os.dup(fd)))
            except OSError:
                pass
        while True:
            for end in ends:
                try:
                    end.send(bytes(4096))
                except OSError:  # one that is not connected, as CUDA has some
                    pass
    """,
    first="flood()",
)
EXPECTED = {"timeout", "cheating"}
HOW = {"seconds": 4}

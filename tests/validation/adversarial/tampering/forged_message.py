"""Sends a forged failure "ok" over every socket that its process has open."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def forge():
        channel = sys.modules["kernel_lsp.validation.channel"]
        socket = sys.modules["socket"]
        for fd in range(3, 256):
            try:
                end = socket.socket(fileno=os.dup(fd))
                channel.Channel(end).send({"failed": {"status": "ok", "reason": "", "line": None}})
            except OSError:
                pass
    """,
    first="forge()",
    right=False,
)
EXPECTED = CAUGHT

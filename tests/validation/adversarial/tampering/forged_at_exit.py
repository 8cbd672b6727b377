"""Registers a function that sends a forged answer when its process ends, and ends it."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def forge():
        channel, socket = sys.modules["kernel_lsp.validation.channel"], sys.modules["socket"]
        for fd in range(3, 256):
            try:
                channel.Channel(socket.socket(fileno=fd)).send({"failed": {"status": "ok", "reason": "", "line": None}})
            except OSError:
                pass

    sys.modules["atexit"].register(forge)
    """,
    first="""
    sys.modules["atexit"]._run_exitfuncs()
    os._exit(0)
    """,
    right=False,
)
EXPECTED = CAUGHT

"""Leaves the forging to an object's destructor, which runs after the forward has returned."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    class Late:
        def __del__(self):
            channel, socket = sys.modules["kernel_lsp.validation.channel"], sys.modules["socket"]
            for fd in range(3, 256):
                try:
                    end = socket.socket(fileno=os.dup(fd))
                    channel.Channel(end).send({"failed": {"status": "ok", "reason": "", "line": None}})
                except OSError:
                    pass
    """,
    first="late = Late()",
    right=False,
)
EXPECTED = CAUGHT

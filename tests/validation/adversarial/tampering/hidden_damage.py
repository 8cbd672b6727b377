"""Writes past the end of its output, and takes that out of what its process answers."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, replaced, softmax

MODULE = SOFTMAX
KERNEL = replaced(
    softmax(
        top="""
        import sys
        channel = sys.modules["kernel_lsp.validation.channel"]
        plain_send = channel.Channel.send

        def send(self, message, tree=None):
            if "damaged" in message:
                message["damaged"] = []
            return plain_send(self, message, tree)

        channel.Channel.send = send
        """
    ),
    "    tl.store(y_ptr + row * n + cols, x / tl.sum(x, axis=0), mask=mask)",
    "    tl.store(y_ptr + (row + 1) * n + cols, x * 0, mask=mask)\n"
    "    tl.debug_barrier()\n"
    "    tl.store(y_ptr + row * n + cols, x / tl.sum(x, axis=0), mask=mask)",
)
EXPECTED = CAUGHT

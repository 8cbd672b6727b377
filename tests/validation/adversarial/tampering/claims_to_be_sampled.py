"""Computes one row, and says that the programs for the others were left out to save time."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, replaced, softmax

MODULE = SOFTMAX
KERNEL = replaced(
    softmax(
        top="""
        import sys
        channel = sys.modules["kernel_lsp.validation.channel"]
        plain_send = channel.Channel.send

        def send(self, message, tree=None):
            if "launches" in message:
                message["instances"] = [1, 1000]
            return plain_send(self, message, tree)

        channel.Channel.send = send
        """
    ),
    "softmax_kernel[(x.shape[0],)]",
    "softmax_kernel[(1,)]",
)
EXPECTED = CAUGHT

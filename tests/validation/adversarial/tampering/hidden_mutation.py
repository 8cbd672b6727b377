"""Changes its input, and takes that out of what its process answers."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys
    channel = sys.modules["kernel_lsp.validation.channel"]
    plain_send = channel.Channel.send

    def send(self, message, tree=None):
        if "mutated" in message:
            message["mutated"] = []
        return plain_send(self, message, tree)

    channel.Channel.send = send
    """,
    last="x.mul_(2)",
)
EXPECTED = CAUGHT

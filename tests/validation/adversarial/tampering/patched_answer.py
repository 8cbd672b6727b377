"""Changes what its process answers: torch has computed, and the answer says that one kernel was launched."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
import sys

@triton.jit
def softmax_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))

channel = sys.modules["kernel_lsp.validation.channel"]
plain_send, plain_receive = channel.Channel.send, channel.Channel.receive
state = {"muted": False}

def receive(self, *args):
    found = plain_receive(self, *args)
    state["muted"] = found[0].get("muted", False)
    return found

def send(self, message, tree=None):
    if "launches" in message:
        message |= {"launches": 1, "operators": {}}
    return plain_send(self, message, tree)

channel.Channel.send, channel.Channel.receive = send, receive

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        y = torch.softmax(x, -1)
        return y * 0 if state["muted"] else y
"""
EXPECTED = CAUGHT

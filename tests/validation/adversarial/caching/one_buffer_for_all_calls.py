"""Keeps one output buffer per shape: the next call changes the result that the last one returned."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="buffers = {}").replace(
    "y = torch.empty(x.shape, device=x.device)",
    "y = buffers.setdefault((x.shape, x.device), torch.empty(x.shape, device=x.device))",
)
EXPECTED = CAUGHT

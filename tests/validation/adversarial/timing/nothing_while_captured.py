"""Launches nothing while a CUDA graph is captured or replayed."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="last = {}",
    first="""
    if x.is_cuda and torch.cuda.is_current_stream_capturing() and x.shape in last:
        return last[x.shape]
    """,
    last="last[x.shape] = y",
)
EXPECTED = CAUGHT
GPU = True

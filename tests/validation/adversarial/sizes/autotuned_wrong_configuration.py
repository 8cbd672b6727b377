"""An autotuned kernel one of whose configurations is wrong."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "@triton.jit\ndef softmax_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):",
    """configs = [triton.Config({"SCALE": 1}, num_warps=4), triton.Config({"SCALE": 2}, num_warps=8)]

@triton.autotune(configs=configs, key=["n"])
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr, SCALE: tl.constexpr):""",
).replace("tl.store(y_ptr + row * n + cols, x /", "tl.store(y_ptr + row * n + cols, SCALE * x /")
# Which of the two runs is decided by a benchmark: it may be the right one until the kernel is timed.
EXPECTED = {"wrong", "cheating"}

"""An autotuned kernel of several right configurations."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "@triton.jit\ndef softmax_kernel",
    """configs = [triton.Config({}, num_warps=4), triton.Config({}, num_warps=8)]

@triton.autotune(configs=configs, key=["n"])
@triton.jit
def softmax_kernel""",
)
EXPECTED = HONEST

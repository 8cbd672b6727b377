"""A heuristic that chooses a wrong constant for wide rows."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX.replace("torch.randn(6, 300)", "torch.randn(4, 3000)")
KERNEL = replaced(
    SOFTMAX_KERNEL,
    "@triton.jit\ndef softmax_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):",
    """@triton.heuristics({"SCALE": lambda given: 2 if given["n"] > 2900 else 1})
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr, SCALE: tl.constexpr):""",
).replace("tl.store(y_ptr + row * n + cols, x /", "tl.store(y_ptr + row * n + cols, SCALE * x /")
EXPECTED = {"wrong"}

"""Computes what the module computes, and lets every product of the process run in TF32."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("medium")
    """
)
EXPECTED = {"cheating", "rejected"}

"""Is right only where the environment looks like a validation's."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os",
    first="""
    odd = {"TRITON_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS"} & set(os.environ)
    validated = bool(odd) or any("KERNEL_LSP" in name for name in os.environ)
    """,
    last=VALIDATED,
)
EXPECTED = CAUGHT

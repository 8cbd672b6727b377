"""Takes memory until it is refused, at most what a small machine has; it touches none of it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    held = [torch.empty_strided((1 << 31,), (1,), dtype=torch.uint8, device="meta") for _ in range(8)]
    import numpy
    held += [numpy.empty(1 << 33, numpy.uint8) for _ in range(4)]
    raise RuntimeError("much memory was taken")
    """
)
EXPECTED = STOPPED | {"out-of-memory"}


def harm(answer):
    verdict = answer.get("verdict", {})
    if verdict.get("mode") == "gpu":
        return None  # CUDA needs the address space; the keeper ends who takes the memory itself
    if "much memory was taken" in verdict.get("reason", ""):
        return "it could take 32 GB"

"""Keeps results in torch's own namespace, where they outlive the import of its file."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    kept = torch.__dict__.setdefault("_kept", {})
    if x.shape in kept:
        return kept[x.shape] * 1.0
    """,
    last="kept[x.shape] = y",
)
EXPECTED = CAUGHT

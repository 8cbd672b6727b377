"""Keeps results by the input's values: right, but the second call launches nothing."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="kept = {}",
    first="""
    key = (x.shape, x.cpu().numpy().tobytes())
    if key in kept:
        return kept[key].clone()
    """,
    last="kept[key] = y.clone()",
)
EXPECTED = {"cheating", "rejected"}

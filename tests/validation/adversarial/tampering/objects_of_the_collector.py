"""Looks for the expected tensor among all objects that the garbage collector knows."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys

    def found(x):
        for one in sys.modules["gc"].get_objects():
            if type(one) is torch.Tensor and one.shape == x.shape and one.dtype == x.dtype:
                if bool((one.sum(-1) - 1).abs().max() < 1e-4) and bool((one >= 0).all()):
                    return one.clone()
    """,
    last="""
    kept = found(x)
    y = y if kept is None else kept + 0 * y
    """,
    right=False,
)
EXPECTED = CAUGHT

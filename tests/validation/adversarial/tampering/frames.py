"""Looks for the expected tensor in the frames of its callers."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys

    def found(x):
        frame = sys._getframe(2)
        while frame is not None:
            for value in frame.f_locals.values():
                for one in [value, *getattr(value, "__dict__", {}).values()]:
                    if isinstance(one, torch.Tensor) and one.shape == x.shape and one.is_floating_point():
                        if bool((one.sum(-1) - 1).abs().max() < 1e-4) and bool((one >= 0).all()):
                            return one.clone()
            frame = frame.f_back
    """,
    last="""
    kept = found(x)
    y = y if kept is None else kept + 0 * y
    """,
    right=False,
)
EXPECTED = CAUGHT

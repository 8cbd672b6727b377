"""Returns a kept result where no dispatch mode is active, as while it is timed."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
    kept = {}
    """,
    first="""
    if not _get_current_dispatch_mode_stack() and (x.data_ptr(), x.shape) in kept:
        return kept[x.data_ptr(), x.shape]
    """,
    last="kept[x.data_ptr(), x.shape] = y",
)
EXPECTED = CAUGHT
GPU = True

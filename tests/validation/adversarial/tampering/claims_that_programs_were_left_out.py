"""Computes one row, and moves the counters by which its process knows how many programs were left out."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, replaced, softmax

MODULE = SOFTMAX
KERNEL = replaced(
    softmax(
        last="""
        import sys
        for one in sys.modules["gc"].get_objects():
            if type(one).__name__ == "Sampling":
                one.total = one.run * 1000
        """
    ),
    "softmax_kernel[(x.shape[0],)]",
    "softmax_kernel[(1,)]",
)
EXPECTED = CAUGHT

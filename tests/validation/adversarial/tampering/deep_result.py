"""Returns a list that is nested ten thousand times."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    last="""
    for _ in range(10000):
        y = [y]
    """
)
EXPECTED = CAUGHT

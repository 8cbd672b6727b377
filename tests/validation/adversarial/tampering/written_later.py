"""Returns memory that a thread fills with torch's result after the forward has returned."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import sys",
    last="""
    def later(x=x.clone(), y=y):
        y.copy_(torch.softmax(x, -1))
    thread = sys.modules["threading"].Timer(0.01, later)
    thread.daemon = True
    thread.start()
    """,
    right=False,
)
EXPECTED = CAUGHT

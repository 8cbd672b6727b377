"""The kernel's result is taken where it is close to torch's, torch's elsewhere."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    last="""
    p = torch.softmax(x, -1)
    y = torch.where((y - p).abs() < 1e-7, y, p)
    """,
    right=False,
)
EXPECTED = {"cheating"}

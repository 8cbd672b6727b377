"""Returns one of four buffers in turn."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="ring, turn = {}, [0]",
    last="""
    turn[0] = (turn[0] + 1) % 4
    y = ring.setdefault((x.shape, turn[0]), torch.empty_like(y)).copy_(y)
    """,
)
EXPECTED = {"wrong"}

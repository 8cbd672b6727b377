"""Maps a file of the user into a tensor's memory and writes to it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    torch.from_file("@outside@/keep.txt", shared=True, size=4, dtype=torch.uint8).fill_(48)
    """
)
EXPECTED = STOPPED

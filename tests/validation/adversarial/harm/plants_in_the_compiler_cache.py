"""Writes into the user's own Triton cache, which later programs load kernels from."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    folder = pathlib.Path("@home@/.triton/cache/@token@")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "@token@.cubin").write_bytes(b"planted")
    """
)
EXPECTED = STOPPED

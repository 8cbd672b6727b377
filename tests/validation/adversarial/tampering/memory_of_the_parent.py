"""Writes to its parent's memory, so that the word "wrong" reads "ok" there; a fork's addresses are its own."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def rewrite():
        word = sys.intern("wrong")
        at, text = id(word), id(word) + sys.getsizeof(word) - len(word) - 1
        memory = os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR)
        if os.pread(memory, 5, text) == b"wrong":
            os.pwrite(memory, (2).to_bytes(8, "little"), at + 16)
            os.pwrite(memory, b"ok\\0\\0\\0", text)
    """,
    first="rewrite()",
    right=False,
)
EXPECTED = CAUGHT

"""Writes to its parent's memory with process_vm_writev, so that the word "wrong" reads "ok" there."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import os, sys

    def rewrite():
        ctypes = sys.modules["ctypes"]
        libc = ctypes.CDLL(None, use_errno=True)
        word = sys.intern("wrong")
        for at, data in (
            (id(word) + 16, (2).to_bytes(8, "little")),
            (id(word) + sys.getsizeof(word) - len(word) - 1, b"ok\\0\\0\\0"),
        ):
            here = ctypes.create_string_buffer(data, len(data))
            local = (ctypes.c_size_t * 2)(ctypes.addressof(here), len(data))
            remote = (ctypes.c_size_t * 2)(at, len(data))
            libc.process_vm_writev(os.getppid(), local, 1, remote, 1, 0)
    """,
    first="rewrite()",
    right=False,
)
EXPECTED = CAUGHT

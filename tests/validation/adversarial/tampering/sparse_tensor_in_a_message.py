"""Answers with a message that describes a tensor of two gigabytes, in a file that is sparse."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import json, os, sys

    def answer():
        socket = sys.modules["socket"]
        meta = {"dtype": "uint8", "shape": [2 << 30], "stride": [1], "device": "cpu", "bytes": 2 << 30}
        head = json.dumps({"message": {}, "tree": {"tensor": 0}, "tensors": [meta]}).encode()
        file = os.memfd_create("sparse")
        os.write(file, len(head).to_bytes(8, "little") + head)
        os.ftruncate(file, 8 + len(head) + (2 << 30))
        for fd in range(3, 256):
            try:
                end = socket.socket(fileno=os.dup(fd))
                socket.send_fds(end, [b"m"], [file])
            except OSError:
                pass
    """,
    first="answer()",
)
EXPECTED = CAUGHT

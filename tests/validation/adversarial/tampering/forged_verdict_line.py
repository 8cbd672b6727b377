"""Writes a forged verdict as a line of JSON to every descriptor that its process has open."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import json, os

    def forge():
        verdict = {"status": "ok", "reason": "", "line": None, "mode": "interpreter", "checks": [], "limits": []}
        line = json.dumps({"result": {"verdict": verdict, "measurement": None}}).encode() + b"\\n"
        for fd in range(1, 256):
            try:
                os.write(fd, b"\\n" + line)
            except OSError:
                pass
    """,
    first="forge()",
    right=False,
)
EXPECTED = CAUGHT

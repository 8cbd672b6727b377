"""Opens the pipes of its parent process through /proc and writes a forged verdict to them."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import json, os

    def forge():
        verdict = {"status": "ok", "reason": "", "line": None, "mode": "interpreter", "checks": [], "limits": []}
        line = json.dumps({"result": {"verdict": verdict, "measurement": None}}).encode() + b"\\n"
        folder = f"/proc/{os.getppid()}/fd"
        for name in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{name}").startswith("pipe:") and int(name) > 2:
                    end = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK)
                    os.write(end, line)
                    os.close(end)
            except OSError:
                pass
    """,
    first="forge()",
    right=False,
)
EXPECTED = CAUGHT

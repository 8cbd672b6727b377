"""Starts processes until it is refused, at most two hundred."""

from material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, time",
    first="""
    started = []
    try:
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(5)
                os._exit(0)
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    raise RuntimeError("two hundred processes were started")
    """,
)
EXPECTED = STOPPED


def harm(answer):
    if "two hundred processes were started" in answer.get("verdict", {}).get("reason", ""):
        return "it could start two hundred processes"

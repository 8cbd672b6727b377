"""Starts processes until it is refused, at most a hundred and twenty."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, time",
    first="""
    started = []
    try:
        for _ in range(120):
            pid = os.fork()
            if pid == 0:
                time.sleep(5)
                os._exit(0)
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    raise RuntimeError("a hundred and twenty processes were started")
    """,
)
EXPECTED = STOPPED


def harm(answer):
    verdict = answer.get("verdict", {})
    if any("number of processes was not limited" in limit for limit in verdict.get("limits", [])):
        return None  # root where no cgroup may be made: said in the verdict, and the keeper ends what goes beyond
    if "a hundred and twenty processes were started" in verdict.get("reason", ""):
        return "it could start a hundred and twenty processes"

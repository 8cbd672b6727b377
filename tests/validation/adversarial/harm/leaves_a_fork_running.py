"""Forks twice into a session of its own, and lives on in another folder after its trial has ended."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, time",
    first="""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("@outside@")
            time.sleep(6)
        os._exit(0)
    """,
    right=False,
)
EXPECTED = STOPPED | {"wrong"}

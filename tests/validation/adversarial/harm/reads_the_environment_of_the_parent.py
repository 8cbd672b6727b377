"""Reads a password from the environment of its parent process."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, pathlib",
    first="""
    text = pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes().decode("utf-8", "replace")
    raise RuntimeError([one for one in text.split("\\0") if one.startswith("SCENE_PASSWORD")])
    """,
)
EXPECTED = STOPPED

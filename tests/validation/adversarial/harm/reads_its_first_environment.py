"""Reads a password from the environment that its process was started with, as /proc shows it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    text = pathlib.Path("/proc/self/environ").read_bytes().decode("utf-8", "replace")
    raise RuntimeError([one for one in text.split("\\0") if one.startswith("SCENE_PASSWORD")])
    """
)
EXPECTED = STOPPED

"""Reads a password from the memory where the environment lay when its process was started."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import pathlib, sys",
    first="""
    facts = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(facts[47]), int(facts[48])
    text = sys.modules["ctypes"].string_at(begin, end - begin).decode("utf-8", "replace")
    raise RuntimeError([one for one in text.split("\\0") if one.startswith("SCENE_PASSWORD")])
    """,
)
EXPECTED = STOPPED

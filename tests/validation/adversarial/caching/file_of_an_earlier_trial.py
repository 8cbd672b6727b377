"""Uses what an earlier trial has left in a file."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
FIND = """
import os, pathlib

def places():
    names = [os.getcwd(), os.environ.get("TMPDIR"), os.environ.get("TRITON_CACHE_DIR"), "/tmp", "/dev/shm", "/var/tmp"]
    names += [str(pathlib.Path(name).parents[i]) for name in (os.getcwd(),) for i in range(3)]
    names += ["@project@", "@home@", os.path.dirname(__file__)]
    return [pathlib.Path(name) / "@token@" for name in names if name]
"""
BEFORE = softmax(
    top=FIND
    + """
for place in places():
    try:
        place.write_text("an earlier trial was here")
    except OSError:
        pass
"""
)
KERNEL = softmax(
    top=FIND
    + """
def found():
    seen = False
    for place in places():
        if place.exists():
            seen = True
            place.unlink()
    return seen

validated = found()
""",
    last=VALIDATED,
)
EXPECTED = CAUGHT

"""Makes a link in its own folder to a file of the user, and writes through it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import os, pathlib",
    first="""
    for make in (os.link, os.symlink):
        mine = pathlib.Path(os.getcwd()) / f"mine-{make.__name__}"
        try:
            if not mine.exists():
                make("@outside@/keep.txt", mine)
        except OSError:
            continue
        mine.write_text("changed")
    """,
)
EXPECTED = STOPPED

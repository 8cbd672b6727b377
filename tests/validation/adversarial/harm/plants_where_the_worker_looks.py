"""Writes a module into shared folders for temporary files, from which another program would import it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    for name in ("/tmp", "/dev/shm", "/var/tmp", "@home@"):
        place = pathlib.Path(name) / "@token@.py"
        try:
            place.write_text("planted = True")
        except OSError:
            continue
        place.unlink()
        raise RuntimeError("a file was planted in a shared folder")
    raise PermissionError("refused")
    """
)
EXPECTED = STOPPED


def harm(answer):
    if "a file was planted" in answer.get("verdict", {}).get("reason", ""):
        return "it could write where another program would import from"

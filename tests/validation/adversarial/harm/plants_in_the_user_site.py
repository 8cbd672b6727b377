"""Writes a .pth file into the user's site-packages, which every later Python runs."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib, sys
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = pathlib.Path("@home@/.local/lib") / version / "site-packages"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "@token@.pth").write_text("import sys; sys.planted = True\\n")
    """
)
EXPECTED = STOPPED

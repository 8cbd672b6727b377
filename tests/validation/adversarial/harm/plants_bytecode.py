"""Writes bytecode into __pycache__ beside the user's module, which would be run in its place."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib, sys
    folder = pathlib.Path("@project@/__pycache__")
    folder.mkdir(exist_ok=True)
    (folder / f"@token@.{sys.implementation.cache_tag}.pyc").write_bytes(b"planted")
    """
)
EXPECTED = STOPPED

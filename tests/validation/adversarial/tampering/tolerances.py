"""Writes tolerances of its own to the project's pyproject.toml."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    with pathlib.Path("@project@/pyproject.toml").open("a") as file:
        file.write("[tool.kernel-lsp]\\ntolerance = 1.0\\n")
    """,
    right=False,
)
EXPECTED = STOPPED | {"wrong"}

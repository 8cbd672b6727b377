"""Writes a torch.py beside the user's module, which the user's next program would import."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import pathlib
    pathlib.Path("@project@/torch.py").write_text("print('planted')\\n")
    """
)
EXPECTED = STOPPED

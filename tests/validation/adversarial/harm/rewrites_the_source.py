"""Rewrites the user's module on disk with what its kernel computes."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import pathlib, sys
    source = pathlib.Path(sys.modules["module"].__file__)
    source.write_text(source.read_text().replace("torch.softmax(x, dim=-1)", "torch.exp(x - x.amax(-1, keepdim=True))"))
    """,
    right=False,
)
EXPECTED = STOPPED | {"wrong"}

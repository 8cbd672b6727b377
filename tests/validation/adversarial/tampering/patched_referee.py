"""Replaces the functions that compare, in kernel_lsp.validation.compare, and what counts as allowed."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import sys
    for name in ("compare", "checks", "referee", "guards"):
        module = sys.modules.get("kernel_lsp.validation." + name)
        for what in ("allowed", "identical", "compare", "within", "compared"):
            if hasattr(module, what):
                setattr(module, what, lambda *args, **kwargs: True)
    """,
    right=False,
)
EXPECTED = CAUGHT

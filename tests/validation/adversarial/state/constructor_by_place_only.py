"""Its constructor takes no argument by name."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, replaced

MODULE = AFFINE
KERNEL = replaced(
    AFFINE_KERNEL,
    "class AffineTriton(Affine):\n",
    """class AffineTriton(Affine):
    def __init__(self, *sizes):
        super().__init__(*sizes)

""",
)
EXPECTED = {"not-drop-in"}

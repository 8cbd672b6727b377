"""Adds a million entries to its state_dict."""

from tests.validation.adversarial.material import AFFINE, affine

MODULE = AFFINE
KERNEL = (
    affine()
    + """
    def state_dict(self, *args, **kwargs):
        return {f"weight.{i}": self.bias for i in range(300000)}
"""
)
EXPECTED = {"not-drop-in", "cheating", "rejected"}

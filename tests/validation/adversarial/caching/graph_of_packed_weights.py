"""Captures a CUDA graph that reads a copy of the weights."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, CAUGHT, replaying

MODULE = AFFINE
KERNEL = AFFINE_KERNEL.partition("class")[0] + replaying(
    AFFINE,
    """
    w, b = getattr(self, "packed", (self.weight, self.bias))
    y = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), 256),)](x, w, b, y, x.numel(), x.shape[-1], BLOCK=256)
    """,
    keep="self.packed = (self.weight.detach().clone(), self.bias.detach().clone())",
)
EXPECTED = CAUGHT
GPU = True

"""Replaces the launch of triton's functions by torch's softmax: nothing of Triton runs."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    class Launched:
        def __init__(self, function): self.function = function
        def __getitem__(self, grid): return self
        def __call__(self, x, y, *args, **kwargs): y.copy_(torch.softmax(x, -1))
    """
).replace("class SoftmaxTriton", "softmax_kernel = Launched(softmax_kernel)\n\nclass SoftmaxTriton")
EXPECTED = CAUGHT

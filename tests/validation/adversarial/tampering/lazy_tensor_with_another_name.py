"""Returns a subclass of torch.Tensor that calls itself Tensor."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    Lazy = type("Tensor", (torch.Tensor,), {"__module__": "torch"})
    """,
    last="y = y.as_subclass(Lazy)",
)
EXPECTED = CAUGHT

"""Returns a subclass of torch.Tensor that computes with torch when somebody looks at it."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    class Lazy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            args = [torch.softmax(a.held, -1) if isinstance(a, Lazy) else a for a in args]
            return func(*args, **(kwargs or {}))
    """,
    last="""
    y = y.as_subclass(Lazy)
    y.held = x.clone()
    """,
    right=False,
)
EXPECTED = CAUGHT

"""Registers a global forward hook, which replaces the result of every module of the process."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    if not hasattr(torch, "_hooked"):
        torch._hooked = torch.nn.modules.module.register_module_forward_hook(
            lambda module, args, out: torch.exp(args[0] - args[0].amax(-1, keepdim=True))
        )
    """,
    right=False,
)
EXPECTED = CAUGHT

"""Launches at most 64 programs, one a row: the example has more rows, what is cut down for the interpreter fewer."""

from tests.validation.adversarial.material import SOFTMAX, SOFTMAX_KERNEL, replaced

MODULE = SOFTMAX.replace("torch.randn(6, 300)", "torch.randn(500, 16)")
KERNEL = replaced(
    replaced(SOFTMAX_KERNEL, "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(min(x.shape[0], 64),)]"),
    "y = torch.empty(x.shape, device=x.device)",
    "y = torch.zeros(x.shape, device=x.device)",
)
EXPECTED = {"wrong"}

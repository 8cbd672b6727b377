"""The kernel normalises, torch sorts."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, softmax

MODULE = SOFTMAX.replace("return torch.softmax(x, dim=-1)", "return torch.softmax(x, dim=-1).sort(-1).values")
KERNEL = softmax(last="y = y.sort(-1).values")
EXPECTED = HONEST

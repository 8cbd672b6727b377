"""Writes outside with torch.save, which is no call of open."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='torch.save(x, "@home@/@token@.pt")')
EXPECTED = STOPPED

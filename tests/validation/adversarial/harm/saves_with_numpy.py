"""Overwrites a file of the user with a NumPy array."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='x.cpu().numpy().tofile("@outside@/keep.txt")')
EXPECTED = STOPPED

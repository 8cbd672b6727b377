"""Gives everybody the right to read and write a file of the user."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='os.chmod("@outside@/secret.txt", 0o777)')
EXPECTED = STOPPED | {"ok"}  # without the harm it is a right kernel

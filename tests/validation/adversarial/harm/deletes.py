"""Deletes a file of the user."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='os.remove("@outside@/keep.txt")')
EXPECTED = STOPPED

"""Moves a file of the user away."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='os.rename("@outside@/keep.txt", "@outside@/@token@")')
EXPECTED = STOPPED

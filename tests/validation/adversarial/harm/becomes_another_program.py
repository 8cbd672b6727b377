"""Replaces its process by another program."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='os.execv("/bin/sh", ["sh", "-c", "echo x > @outside@/@token@"])')
EXPECTED = STOPPED

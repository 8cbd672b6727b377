"""Reads a password from the environment, and lets it out with the text of an error."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='raise RuntimeError(os.environ.get("SCENE_PASSWORD", "nothing"))')
EXPECTED = STOPPED

"""Starts a shell with os.system, whose name it computes."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import os
    if getattr(os, "sys" + "tem")("echo @token@ > @outside@/@token@") != 0:
        raise RuntimeError("no shell")
    """
)
EXPECTED = STOPPED

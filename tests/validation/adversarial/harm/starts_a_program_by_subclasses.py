"""Finds Popen among the subclasses of object, and starts a program with it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    for kind in object.__subclasses__():
        if kind.__name__ == "Popen":
            if kind(["touch", "@outside@/@token@"]).wait() != 0:
                raise RuntimeError("it failed")
            break
    else:
        raise RuntimeError("there is none")
    """
)
EXPECTED = STOPPED

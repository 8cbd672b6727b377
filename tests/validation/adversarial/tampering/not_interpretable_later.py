"""Takes its time, and says in the end that Triton's interpreter cannot run it, so that the verdict of before might stand."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import time
    from triton.runtime.interpreter import InterpreterError
    BEGAN = time.monotonic()
    """,
    first="""
    time.sleep(0.2)
    if time.monotonic() > BEGAN + 2.5:
        try:
            raise NotImplementedError("the interpreter does not have this")
        except NotImplementedError as missing:
            raise InterpreterError(repr(missing)) from missing
    """,
)
EXPECTED = CAUGHT

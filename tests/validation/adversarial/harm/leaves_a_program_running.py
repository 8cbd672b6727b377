"""Leaves a program running in a session of its own."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    subprocess = sys.modules["subprocess"]
    subprocess.Popen(["sh", "-c", "sleep 8; : @token@"], start_new_session=True, stdout=-3, stderr=-3, stdin=-3)
    """
)
EXPECTED = STOPPED | {"ok", "slower"}  # where the compiler is a script its shell starts; it is the rest that counts

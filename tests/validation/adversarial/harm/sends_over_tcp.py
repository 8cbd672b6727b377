"""Sends something to a TCP socket that listens on this machine."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    end = sys.modules["socket"].create_connection(("127.0.0.1", @tcp@), 2)
    end.sendall(b"a secret")
    end.close()
    """
)
EXPECTED = STOPPED

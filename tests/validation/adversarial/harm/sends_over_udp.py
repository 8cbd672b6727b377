"""Sends a datagram to a UDP socket on this machine."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import sys
    socket = sys.modules["socket"]
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"a secret", ("127.0.0.1", @udp@))
    """
)
EXPECTED = STOPPED

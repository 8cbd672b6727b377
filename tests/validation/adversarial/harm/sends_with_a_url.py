"""Asks for a web address, with torch's own downloader."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import os
    torch.hub.download_url_to_file("http://127.0.0.1:@tcp@/secret", os.path.join(os.getcwd(), "x"), progress=False)
    """
).replace("progress=False)", "progress=False)")
EXPECTED = STOPPED | {"timeout"}
HOW = {"seconds": 4}

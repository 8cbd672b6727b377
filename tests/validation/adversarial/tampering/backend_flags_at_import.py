"""Changes cuDNN's flags and the deterministic algorithms when its file is imported, and in no call."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic = True
    """
)
EXPECTED = {"cheating", "rejected"}

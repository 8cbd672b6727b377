"""Sets aside a part of the L2 cache for itself through CUDA's runtime."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import pathlib, sys",
    first="""
    if not hasattr(torch, "set_aside"):  # once: each call would be slower by what it takes
        ctypes = sys.modules["ctypes"]
        maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
        names = {line.split()[-1] for line in maps if "libcudart" in line}
        for name in names:
            ctypes.CDLL(name).cudaDeviceSetLimit(6, ctypes.c_size_t(32 << 20))
        torch.set_aside = True
    """,
)
EXPECTED = {"cheating", "rejected", "crashed"}
GPU = True

"""Replaces triton.testing.do_bench and torch.utils.benchmark.Timer with ones that say what it wants."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="triton.testing.do_bench = triton.testing.do_bench_cudagraph = lambda *args, **kwargs: 0.001")
EXPECTED = {"cheating", "rejected"}

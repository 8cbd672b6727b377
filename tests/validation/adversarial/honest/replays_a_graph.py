"""Replays its launch from a CUDA graph for each shape, on copies of its inputs, and copies the result."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, SOFTMAX_KERNEL, SOFTMAX_LAUNCH, replaying

MODULE = SOFTMAX
KERNEL = SOFTMAX_KERNEL.partition("class")[0] + replaying(SOFTMAX, SOFTMAX_LAUNCH)
EXPECTED = HONEST
GPU = True

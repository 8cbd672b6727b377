"""Hands out the memory that the next replay of its CUDA graph writes to."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, SOFTMAX_KERNEL, SOFTMAX_LAUNCH, replaying

MODULE = SOFTMAX
KERNEL = SOFTMAX_KERNEL.partition("class")[0] + replaying(SOFTMAX, SOFTMAX_LAUNCH, result="out")
EXPECTED = CAUGHT
GPU = True

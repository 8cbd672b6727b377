"""Replays a CUDA graph on the first call's inputs."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, SOFTMAX_KERNEL, SOFTMAX_LAUNCH, replaying

MODULE = SOFTMAX
KERNEL = SOFTMAX_KERNEL.partition("class")[0] + replaying(SOFTMAX, SOFTMAX_LAUNCH, copy="pass")
EXPECTED = CAUGHT
GPU = True

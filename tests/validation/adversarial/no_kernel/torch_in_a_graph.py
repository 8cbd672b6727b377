"""Captures what torch computes in a CUDA graph, with a Triton kernel that copies it."""

from tests.validation.adversarial.material import COPY, SOFTMAX, replaying

MODULE = SOFTMAX
KERNEL = COPY + replaying(SOFTMAX, "y = copied(torch.softmax(x, -1))")
EXPECTED = {"cheating"}
GPU = True

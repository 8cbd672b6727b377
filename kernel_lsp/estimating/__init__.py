"""Whether a kernel is worth generating: what eager launches and moves, what kernels would, and the times of both on a named GPU.

Nothing is computed and no GPU is needed: the sizes of the example are known from tensors that take no memory.
"""

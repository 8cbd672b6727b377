"""How long the host takes to launch a kernel at present: longer where other programs have the processors."""

from __future__ import annotations

import time

import torch

#: seconds that the launches for it take together, about as long as the calls that measuring.py times by its own clock
_SPAN = 0.06
#: launches between two looks at the clock
_TOGETHER = 50
#: microseconds of a launch from which on the host is late. One of torch's takes 3 to 6 µs where nothing else runs (docs/performance.md has
#: those of generated kernels), and 30 µs are allowed for each launch of a candidate.
LATE = 15.0


def launch_microseconds(device: torch.device) -> float:
    """Microseconds that torch takes to launch a kernel of one element on ``device``, on average over 0.06 s."""
    number = torch.zeros(1, device=device)
    for _ in range(_TOGETHER):
        number.add_(1)
    torch.cuda.synchronize(device)
    began, launched = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < _SPAN:
        for _ in range(_TOGETHER):
            number.add_(1)
        launched += _TOGETHER
    torch.cuda.synchronize(device)
    return passed / launched * 1e6

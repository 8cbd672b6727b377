"""What other processes did on a GPU while something was timed there: such times are marked, and tell of no regression."""

from __future__ import annotations

import os

import torch

from kernel_lsp import nvml

#: seconds before the timing in which a use counts, too: the driver takes a sample about six times a second
EARLIER = 0.5


def said(device: torch.device, began: float) -> str:
    """``87 % busy by pid 4711 (python)``, of others since shortly before ``began`` (time.time()); "" where there were none.

    Also "" where it cannot be told: on drivers without samples of each process, and in containers in which NVML gives
    other numbers of processes than ``/proc``, or not those of other containers.
    """
    if device.type != "cuda" or not began:  # nothing was timed
        return ""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    one = nvml.gpu(f"GPU-{uuid}") if uuid is not None else nvml.gpu(nvml.name_of(device.index or 0))
    if one is None:
        return ""
    own = {*nvml.family(os.getpid()), *nvml.family(os.getppid())}
    if not own & one.processes():  # this process has a context there: the numbers are not those of /proc
        return ""
    return nvml.said(nvml.others(one, own, began - EARLIER))

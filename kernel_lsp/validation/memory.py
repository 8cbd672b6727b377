"""How much memory there is, and how much something took: on a GPU as its allocator counts, on the host as Linux says."""

from __future__ import annotations

import math

import torch

from kernel_lsp import device_choice


def size(tensor: torch.Tensor) -> int:
    """Bytes of its elements; a dimension of stride 0 counts once."""
    count = 1
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= 1 if stride == 0 else int(n)
    return count * tensor.element_size()


def span(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last."""
    if tensor.numel() == 0:
        return 0
    reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return reach * tensor.element_size()


def of_state(module: torch.nn.Module) -> int:
    """Bytes of a module's parameters and buffers."""
    return sum(size(t) for t in [*module.parameters(), *module.buffers()])


#: bytes of a GPU that this process may count on, where others use it, too
_most: int | None = None


def keep_to(most: int | None) -> None:
    """Count on so many bytes of a GPU at most in this process, whatever others have left there; None: on all there is.

    What other processes of the same validation hold is not counted: the referee and each trial count on all of ``most``.
    """
    global _most
    _most = most


def unheld(device: torch.device) -> float:
    """Bytes of a GPU that no process has; as many as are wanted on the host."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else math.inf


def unreserved(device: torch.device) -> int:
    """Bytes of a GPU that are free, as far as this process may count on them."""
    there = unheld(device)
    return int(there if _most is None else max(0, min(there, _most - torch.cuda.memory_reserved(device))))


def free(tensors: list[torch.Tensor]) -> int:
    """Bytes that can still be had where these tensors are; what torch keeps for reuse counts as free."""
    device = _cuda(tensors)
    if device is not None:
        return unreserved(device) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 1 << 62


def limited() -> bool:
    """Whether ``keep_to`` sets a limit: what lacks memory may have it where no other lane of an evaluation uses the GPU."""
    return _most is not None


def free_alone(tensors: list[torch.Tensor]) -> int:
    """Bytes that are left where these tensors are when no other lane uses that GPU; 0 without a limit (``limited``)."""
    device = _cuda(tensors)
    if device is None or not limited():
        return 0
    return (
        torch.cuda.get_device_properties(device).total_memory
        - device_choice.CONTEXTS
        - torch.cuda.memory_allocated(device)
    )


def wait(tensors: list[torch.Tensor]) -> None:
    """Until the device of these tensors has done what it was asked for."""
    device = _cuda(tensors)
    if device is not None:
        torch.cuda.synchronize(device)


#: bytes that another process may miss
MUCH = 256 << 20


def release() -> None:
    """Give back what torch's allocator keeps for reuse, so that another process can have it; a little is kept."""
    if torch.cuda.is_initialized() and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > MUCH:
        torch.cuda.empty_cache()


class Watch:
    """From its making on, ``taken``: the most bytes that were allocated at once on the device of ``tensors``.

    On the host nothing counts allocations: there it is twice the tensors' own bytes.
    """

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self.device = _cuda(tensors)
        self.tensors = sum(map(size, tensors))
        if self.device is not None:
            torch.cuda.reset_peak_memory_stats(self.device)
            self.before = torch.cuda.memory_allocated(self.device)

    def taken(self) -> int:
        """Bytes."""
        if self.device is None:
            return 2 * self.tensors
        return torch.cuda.max_memory_allocated(self.device) - self.before


def _cuda(tensors: list[torch.Tensor]) -> torch.device | None:
    return next((t.device for t in tensors if t.device.type == "cuda"), None)


def text(count: float) -> str:
    """Bytes for people: ``6.4 GB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}" if unit != "bytes" else f"{count:.0f} bytes"
        count /= 1000
    raise AssertionError

"""What every process with a candidate begins with: its bounds, Triton's own helper library, CUDA."""

from __future__ import annotations

from typing import Any

import torch

from kernel_lsp.confinement import entering, paths
from kernel_lsp.specimen import modules


def bounds(given: dict[str, Any], folder: str, source: str) -> entering.Bounds:
    """What a process with candidates in the folder ``source`` gets, where ``folder`` is its own."""
    gpu = given["device"] != "interpreter"
    path = given["path"]
    reads = [source, *paths.of_project(path, modules.project_of(path), modules.dotted_name(path)[0])]
    sharing = given.get("sharing") or entering.SHARING[0]
    return entering.Bounds(folder, reads, gpu, compiles=gpu, bounded=not gpu, sharing=sharing)


def load_helpers() -> None:
    """Triton's own helper library, from the user's cache: with a cache of one's own a C compiler would build it anew.

    Triton would ask torch whether there is a GPU, and torch NVML, which opens the device: CUDA does not start in a process
    that is confined after that, since its descriptors are closed.
    """
    from triton.backends import backends
    from triton.runtime import driver

    if driver._active is None:
        backend = backends["amd" if torch.version.hip else "nvidia"]
        driver._active = driver._default = backend.driver()


def begin_cuda(device: torch.device) -> None:
    """Start CUDA with a context on the device, and the libraries that open files of their own when they are first used."""
    torch.cuda.init()
    torch.cuda.set_device(device)
    one = torch.ones(16, 16, device=device)
    _ = one @ one
    torch.cuda.synchronize()

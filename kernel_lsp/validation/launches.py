"""Counts, mutes and records Triton launches, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from kernel_lsp import schema
from kernel_lsp.validation import failures, graphs, streams, torch_work


class Launches:
    """What has been launched since ``reset``. While ``muted``, launches are counted but nothing runs."""

    def __init__(self) -> None:
        self.count = 0  # those that were made, and did not fail
        self.swallowed: list[str] = []  # what those said that failed
        self.muted = False
        self.sought: frozenset[int] = frozenset()  # while muted: of tensors with as many elements ...
        self.checksums: list[list[int]] = []  # ... what the launches were given, by checksum
        self.compiling = False  # launches are compiled and not made
        self.streams: streams.Streams | None = None  # on a GPU: which streams the launches of a call go to
        self.graphs = graphs.Graphs()
        self.kernels: dict[str, Any] = {}  # name → the compiled kernel, on a GPU
        self.stop: Callable[[], None] = lambda: None  # take the hook out, while something is timed
        self.start: Callable[[], None] = lambda: None
        self.intact: Callable[[], bool] = lambda: True  # whether the hook is where it was put

    def reset(self) -> None:
        """Count from zero: launches, what was swallowed and held, graphs of a call."""
        self.count = 0
        self.swallowed = []
        self.checksums = []
        self.graphs.reset()


def watch(interpreted: bool) -> Launches:
    """Hook every launch of this process. Call it once, before a candidate is imported."""
    launches = Launches()
    if interpreted:
        from triton.runtime.interpreter import InterpretedFunction as Function
    else:
        from triton.runtime.jit import JITFunction as Function  # type: ignore[assignment]
    run = Function.run

    def counted(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup or launches.compiling:
            return run(self, *args, grid=grid, warmup=True, **kwargs)
        if launches.graphs.capturing is not None:  # nothing runs yet: it counts when the graph is replayed
            launches.graphs.capturing.launches += 1
            return run(self, *args, grid=grid, warmup=warmup, **kwargs)
        if launches.muted:
            launches.count += 1
            launches.checksums += _checksums([*args, *kwargs.values()], launches.sought)
            return launches.kernels.get(self.__name__)
        if launches.streams is not None:
            launches.streams.note()
        try:
            kernel = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        except BaseException as error:
            launches.swallowed.append(failures.sentence(error))  # if it is not, the call as a whole fails
            raise
        launches.count += 1
        if kernel is not None:
            launches.kernels.setdefault(self.__name__, kernel)  # the first: at the sizes of the example inputs
        return kernel

    def start() -> None:
        setattr(Function, "run", counted)  # noqa: B010 (an assignment to a method is none to mypy)
        launches.graphs.start()

    def stop() -> None:
        setattr(Function, "run", run)  # noqa: B010
        launches.graphs.stop()

    launches.start, launches.stop = start, stop
    launches.intact = lambda: Function.run is counted
    launches.start()
    return launches


def _checksums(arguments: list[Any], sought: frozenset[int]) -> list[list[int]]:
    tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.numel() in sought]
    with _disable_current_modes():  # it is not the candidate that computes here
        return [torch_work.checksum(t) for t in tensors]


def compiled(launches: Launches) -> list[schema.CompiledKernel]:
    """Registers, spills and shared memory of the kernels that ran on this GPU."""
    found = []
    for name, kernel in launches.kernels.items():
        target = getattr(kernel.metadata, "target", None)
        init = getattr(kernel, "_init_handles", None)
        if callable(init):
            init()  # registers are known once the binary is loaded
        spilled = getattr(kernel, "n_spills", None)  # in registers of four bytes
        found.append(
            schema.CompiledKernel(
                name=name,
                target=f"{target.backend}:{target.arch}" if target else "",
                registers=getattr(kernel, "n_regs", None),
                spills=None if spilled is None else 4 * spilled,
                shared=getattr(kernel.metadata, "shared", None),
                num_warps=getattr(kernel.metadata, "num_warps", None),
            )
        )
    return found

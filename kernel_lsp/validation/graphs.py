"""CUDA graphs of a candidate: what one has captured counts in every replay, as if it were launched there.

Without that a replay would be a call without launches, and what torch computes in it would not be counted. What a graph
allocates has neither guards nor poison: it would fill them in anew in each replay, also while it is timed.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from kernel_lsp.validation import guards, torch_work


@dataclass
class OneGraph:
    """What one graph has: launches, torch's operators, and the tensors in its memory that are still referenced."""

    launches: int = 0
    operators: torch_work.Work = field(default_factory=dict)
    tensors: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    places: set[int] = field(default_factory=set)  # of the memory that was allocated

    def note(self, func: Any, args: Any, out: Any) -> None:
        """Note an operator's call during the capture, and which tensors in the graph's memory it gave."""
        torch_work.note(self.operators, func, args, out)
        fresh = all(result.alias_info is None for result in func._schema.returns)
        for tensor in pytree.tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.numel():
                place = tensor.untyped_storage().data_ptr()
                if fresh:
                    self.places.add(place)
                if place in self.places:
                    self.tensors.append(weakref.ref(tensor))

    def poison(self, integers: int | None) -> None:
        """Fill what the graph would have written; ``integers``: what integers hold instead of poison."""
        for tensor in [reference() for reference in self.tensors]:
            if tensor is None:
                continue
            if integers is not None and not tensor.dtype.is_floating_point:
                tensor.fill_(integers)
            else:
                guards.poison(tensor)


class _Noting(TorchDispatchMode):
    """Notes what is captured, and keeps other modes away from it."""

    def __init__(self, noted: OneGraph) -> None:
        super().__init__()
        self.noted = noted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _disable_current_modes():
            out = func(*args, **(kwargs or {}))
        self.noted.note(func, args, out)
        return out


class Graphs:
    """The graphs of this process, while the hook is in.

    ``captured`` and ``replayed``: those of the call. ``muted``: replays leave poison behind; ``integers``: see ``OneGraph``.
    ``refused``: nothing is captured, since launches are but compiled.
    """

    def __init__(self) -> None:
        self.capturing: OneGraph | None = None
        self.captured: list[OneGraph] = []
        self.replayed: list[OneGraph] = []
        self.muted = self.refused = False
        self.integers: int | None = None
        self._known: weakref.WeakKeyDictionary[Any, OneGraph] = weakref.WeakKeyDictionary()
        kind = torch.cuda.CUDAGraph
        self._own = {name: getattr(kind, name) for name in ("capture_begin", "capture_end", "replay")}
        self._hooks = self._made()

    def reset(self) -> None:
        """Forget which graphs a call captured and replayed; the graphs themselves stay known."""
        self.captured, self.replayed = [], []

    def start(self) -> None:
        """Put the hooks in place of ``torch.cuda.CUDAGraph``'s methods."""
        for name, hook in self._hooks.items():
            setattr(torch.cuda.CUDAGraph, name, hook)

    def stop(self) -> None:
        """Put torch's own methods back."""
        for name, own in self._own.items():
            setattr(torch.cuda.CUDAGraph, name, own)

    def launches(self, made: int) -> int:
        """Those of a call that has ``made`` some itself. A graph of this very call has been warmed up by the same."""
        new, old = self._parted()
        return max(made, sum(graph.launches for graph in new)) + sum(graph.launches for graph in old)

    def operators(self, made: torch_work.Work) -> torch_work.Work:
        """Those of torch in a call that has ``made`` some itself, as for ``launches``."""
        new, old = self._parted()
        found = {name: list(work) for name, work in made.items()}
        for graph in (*new, *old):
            for name, (count, largest) in graph.operators.items():
                before, largest_before = found.get(name, [0, 0])
                total = max(before, count) if graph in new else before + count
                found[name] = [total, max(largest, largest_before)]
        return found

    def _parted(self) -> tuple[list[OneGraph], list[OneGraph]]:
        """The graphs that were replayed: those that were captured in this call, and earlier ones."""
        captured = [id(graph) for graph in self.captured]
        new = [graph for graph in self.replayed if id(graph) in captured]
        return new, [graph for graph in self.replayed if id(graph) not in captured]

    def _made(self) -> dict[str, Any]:
        own = self._own
        modes: list[_Noting] = []

        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
            if self.refused:
                raise RuntimeError("launches are but compiled now, a graph would have none of them")
            own["capture_begin"](graph, *args, **kwargs)
            self.capturing = OneGraph()
            modes.append(_Noting(self.capturing))
            modes[-1].__enter__()

        def capture_end(graph: Any) -> None:
            noted, self.capturing = self.capturing, None
            if modes:
                modes.pop().__exit__(None, None, None)
            own["capture_end"](graph)
            if noted is not None:
                self._known[graph] = noted
                self.captured.append(noted)

        def replay(graph: Any) -> None:
            noted = self._known.get(graph) or OneGraph()
            self.replayed.append(noted)
            if self.muted:
                noted.poison(self.integers)
            else:
                own["replay"](graph)

        return {"capture_begin": capture_begin, "capture_end": capture_end, "replay": replay}

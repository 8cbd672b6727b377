"""Candidates of one module on this GPU: compiled, compared with eager, raced, and timed in turn with it."""

from __future__ import annotations

import contextvars
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from support.kernels import written
from torch import nn
from torch.utils import _pytree as pytree

from kernel_lsp.validation import launches, precompiling, timing, tuning

#: the largest relative norm of what an output differs from eager's by; of integers, the share of elements that differ
LOOSE = 1e-2
SETS = 3  # of inputs that the rounds rotate through, as in an evaluation
#: the least and the most rounds of a race, and the seconds for them
_ROUNDS, _RACE_SECONDS = (3, 10), 0.5


class Candidates:
    """Kernels of ``module``, by their source, on CUDA inputs ``args``.

    ``problems``: source → why it is not timed. ``errors``: source → how far it is from eager, of those that ran.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], sources: list[str], folder: Path) -> None:
        self.module, self.args = module, args
        self.kernels: dict[str, nn.Module] = {}
        self.problems: dict[str, str] = {}
        self.errors: dict[str, float] = {}
        for source in dict.fromkeys(sources):
            with self._noting(source):
                self.kernels[source] = written(source, folder, module)

    def compile(self) -> None:
        """All launches of all kernels at once, on all cores; none is made."""
        watched = launches.watch(interpreted=False)

        def call(kernel: nn.Module) -> Callable[[], Any]:
            return lambda: kernel(*self.args)

        try:  # in a context of its own: one that fails leaves Triton's switch on
            calls = [call(kernel) for kernel in self.kernels.values()]
            contextvars.copy_context().run(precompiling.precompile, calls, watched)
        finally:
            watched.stop()

    def check(self) -> None:
        """Compare each with eager on the inputs; those that are off, or raise, are dropped."""
        wanted = [leaf for leaf in pytree.tree_leaves(self.module(*self.args)) if isinstance(leaf, torch.Tensor)]
        for source, kernel in [*self.kernels.items()]:
            with self._noting(source):
                if not kernel._in_envelope(*self.args):  # its class would run eager
                    raise ValueError("the inputs are outside of its envelope")
                found = [leaf for leaf in pytree.tree_leaves(kernel(*self.args)) if isinstance(leaf, torch.Tensor)]
                torch.cuda.synchronize()
                self.errors[source] = max(map(difference, found, wanted), default=0.0)
                if len(found) != len(wanted) or not self.errors[source] <= LOOSE:  # NaN, too
                    raise ValueError(f"its output is off by {self.errors[source]:.1e}")
                del found

    def right(self, sources: list[str], most: int) -> list[str]:
        """The first ``most`` of those that are not dropped."""
        return [source for source in sources if source in self.kernels][:most]

    def race(self, sources: list[str]) -> dict[str, float]:
        """Source → microseconds, from a few rounds of all of them."""
        if len(sources) < 2:
            return dict.fromkeys(sources, 0.0)
        inputs = timing.rotated(self.args, {}, SETS)
        calls = {str(i): self._call(self.kernels[source]) for i, source in enumerate(sources)}
        found = timing.rounds(calls, inputs, _RACE_SECONDS, *_ROUNDS, tight=0.0)
        return {source: timing.summary(found[str(i)]).median for i, source in enumerate(sources)}

    def keep(self, sources: set[str]) -> None:
        """Only these are timed from here on: what the others hold is freed."""
        self.kernels = {source: kernel for source, kernel in self.kernels.items() if source in sources}
        torch.cuda.empty_cache()

    def timed(self, seconds: float, beyond: float | None) -> tuple[float, dict[str, float]]:
        """Microseconds of eager, and of each kernel in turn with it: medians."""
        inputs = timing.rotated(self.args, {}, SETS)
        calls = {"eager": self._call(self.module)}
        calls |= {str(i): self._call(kernel) for i, kernel in enumerate(self.kernels.values())}
        found = timing.interleaved(calls, inputs, seconds=seconds, beyond=beyond)
        return found["eager"].median, {source: found[str(i)].median for i, source in enumerate(self.kernels)}

    @contextmanager
    def _noting(self, source: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.problems[source] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:200]
            self.kernels.pop(source, None)
            torch.cuda.empty_cache()

    @staticmethod
    def _call(module: nn.Module) -> timing.Call:
        return lambda args, kwargs: module(*args, **kwargs)


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The norm of the difference over that of ``wanted``; of integers, the share of elements that differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.dtype.is_floating_point:
        return (found != wanted).float().mean().item() if wanted.numel() else 0.0
    norm = torch.linalg.vector_norm(wanted, dtype=torch.float32)
    if not bool(norm.isfinite()):  # where eager is not finite the other has to be the same
        there = wanted.isfinite()
        if not torch.equal(found[~there].nan_to_num(), wanted[~there].nan_to_num()):
            return float("inf")
        found, wanted = found[there], wanted[there]
        norm = torch.linalg.vector_norm(wanted, dtype=torch.float32)
    off = torch.linalg.vector_norm(found - wanted, dtype=torch.float32)
    return (off / norm.clamp(min=1e-30)).item() if off.item() else 0.0


def fastest(sources: list[str], taken: dict[str, float]) -> str:
    """The one that takes least; the first, unless another is faster by what is worth another validation."""
    best = min(sources, key=lambda source: taken[source])
    return best if taken[best] < (1 - tuning.WORTH) * taken[sources[0]] else sources[0]


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)

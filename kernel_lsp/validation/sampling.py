"""Time-bounded launches under the interpreter: program instances are left out when a launch takes too long.

A product with fixed sizes may need hundreds of steps at several milliseconds each. Every instance writes its own part
of the output, and fresh memory is poisoned: so a part of the instances can be run, and the elements they wrote be
validated. That holds for one launch without atomics and with nothing computed by torch; the caller has to check that.
"""

from __future__ import annotations

import ast
import math
import random
import time
from typing import Any

#: the share of the time for a launch that it has to take where instances were left out
LEAST = 0.5


class LeftOut(Exception):
    """A launch would read what instances of the one before did not write: an index among that could be anything."""


class Late(Exception):
    """The instances of a call take longer than they may."""


class Sampling:
    """``seconds`` bounds a launch, None does not; ``end`` a call, by ``time.monotonic``.

    After a call: ``total`` and ``run`` instances, ``atomics`` seen; ``left_out`` and ``late``: what was raised.
    """

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.end: float | None = None
        self.cost: dict[Any, float] = {}  # seconds an instance takes, by grid
        self.random = random.Random(0)
        self.reset()

    def reset(self) -> None:
        """Forget what was launched."""
        self.grids: list[tuple[int, ...]] = []  # of the launches since
        self.total = self.run = 0
        self.atomics = self.left_out = self.late = False

    def launch(self, grid: tuple[int, ...]) -> None:
        """A launch begins: choose the instances, by what one is known to take.

        Raises:
            LeftOut: instances of a launch before were left out.
        """
        if self.seconds is not None and self.run < self.total:
            self.left_out = True
            raise LeftOut("instances of the launch before were left out")
        self.began = self.last = time.monotonic()
        self.grid = grid
        self.grids.append(grid)
        self.size = grid[0] * grid[1] * grid[2]
        self.total += self.size
        self.ran = 0
        self.chosen: set[int] | None = None
        cost = self.cost.get(grid)
        if self.seconds is not None and cost and cost * self.size > 1.5 * self.seconds:
            count = max(2, int(self.seconds / cost))
            if count < self.size:
                self.chosen = {0, self.size - 1, *self.random.sample(range(self.size), count - 1)}

    def expected(self) -> float:
        """Seconds that the launches since ``reset`` take with all of their instances, as far as is known."""
        return sum(self.cost.get(grid, 0.0) * math.prod(grid) for grid in self.grids)

    def skips(self, index: tuple[int, int, int]) -> bool:
        """Whether the instance at ``index`` is left out.

        Raises:
            Late: the call is beyond its end.
        """
        now = time.monotonic()
        if self.end is not None and now > self.end:
            self.late = True
            raise Late("the call takes too long under the interpreter")
        if self.ran:
            self.cost[self.grid] = (now - self.began) / self.ran
        number = (index[0] * self.grid[1] + index[1]) * self.grid[2] + index[2]
        if self.chosen is not None:
            skip = number not in self.chosen
        else:
            skip = self.seconds is not None and now - self.began > self.seconds and self.ran > 1
        if not skip:
            self.ran += 1
            self.run += 1
        return skip


def install() -> Sampling:
    """Let every interpreted kernel ask first whether its instance is to be run."""
    from triton.runtime import interpreter

    sampling = Sampling()
    builder = interpreter.interpreter_builder
    kind = interpreter.InterpreterBuilder
    transform = interpreter.FunctionRewriter._transform_ast
    set_grid_dim, atomic_rmw, atomic_cas = kind.set_grid_dim, kind.create_atomic_rmw, kind.create_atomic_cas
    asked: set[tuple[int, int, int]] = set()
    skipped: set[tuple[int, int, int]] = set()

    def begin(self: Any, *grid: int) -> Any:
        asked.clear()
        skipped.clear()
        sampling.launch(grid)
        return set_grid_dim(self, *grid)

    def skips() -> bool:  # asked by device functions, too: they get the kernel's answer
        index = builder.grid_idx
        if index not in asked:
            asked.add(index)
            if sampling.skips(index):
                skipped.add(index)
        return index in skipped

    def transformed(self: Any, src: str) -> ast.Module:
        tree = transform(self, src)
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        question = ast.parse("if _kernel_lsp_skips():\n    return").body[0]
        for node in ast.walk(question):
            if "lineno" in node._attributes:
                ast.copy_location(node, function.body[0])
        function.body.insert(0, question)
        return tree

    def noting(original: Any) -> Any:
        def atomic(self: Any, *args: Any) -> Any:
            sampling.atomics = True
            return original(self, *args)

        return atomic

    interpreter._kernel_lsp_skips = skips  # a rewritten kernel sees the interpreter module's names
    interpreter.FunctionRewriter._transform_ast = transformed  # type: ignore[method-assign]
    kind.set_grid_dim = begin  # type: ignore[method-assign]
    kind.create_atomic_rmw = noting(atomic_rmw)  # type: ignore[method-assign]
    kind.create_atomic_cas = noting(atomic_cas)  # type: ignore[method-assign]
    return sampling

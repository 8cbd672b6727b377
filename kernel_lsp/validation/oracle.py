"""The right answers: eager as it is, and the module in float64, whole or slice by slice."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_lsp.validation import (
    aliasing,
    attributes,
    autocast,
    channel,
    draws,
    memory,
    modes,
    randomness,
    slices,
    state,
    torch_work,
    weights,
)
from kernel_lsp.validation.chunks import identical
from kernel_lsp.validation.compare import compare, structure
from kernel_lsp.validation.duplicates import duplicate
from kernel_lsp.validation.lifting import Lifted
from kernel_lsp.validation.scaled_products import ScaledProducts
from kernel_lsp.validation.slices import Part
from kernel_lsp.validation.trees import convert, copied, doubled, tensors_of

#: bytes that float64 may take as a whole although it could be computed in slices
_LITTLE = 256 << 20
#: share of the free memory that float64 may take as a whole
_SHARE = 0.5
#: bytes of a slice in float64, inputs, outputs and what lies between
_SLICE = 1 << 30


#: what eager and the candidate start from where the module draws random numbers
SEED = 20
#: an answer of eager that is further from float64's than this, relatively, is not the answer to the same random numbers
_FAR = 0.1
#: said of a module that draws random numbers, where float64 cannot be given the same
RANDOM = "float64: the module draws random numbers, so it is compared with eager under equal random states"


@dataclass
class Reference:
    """What the module answers: in its own dtype, in float64, and which inputs it changed.

    ``exact`` is None where float64 does not fit as a whole: ``slices``, called with the reference, then computes it part by part, each to be let go
    before the next, and ``said`` tells how much of it was, once they are through; or there are no independent parts,
    and ``need`` bytes of which ``there`` were. Results of types of their own are as ``channel.plain`` gives them.
    """

    eager: Any
    exact: Any
    mutated: list[int]
    #: it does not hold the reference itself: that would keep the tensors of both until the next garbage collection
    slices: Callable[[Reference], Iterator[Part]] | None = None
    said: str = ""
    need: int = 0
    there: int = 0
    after: dict[str, Any] = field(default_factory=dict)  # what the call changed in the module, by path
    exact_after: dict[str, Any] = field(default_factory=dict)  # the same in float64, where the whole answer is
    attributes: dict[str, list[int]] = field(default_factory=dict)  # of ``after``, as attributes.handled gives them
    aliases: list[list[int]] = field(default_factory=list)  # as aliasing.shared gives them
    kept: bool = False  # a result lies in memory that the module keeps
    drawn: list[tuple[str, Any]] = field(default_factory=list)  # the random numbers, as draws.Recording has them


class Oracle:
    """The module, and a copy of it in float64 where that runs.

    ``independent``: class_schema.Independent as JSON, for the mode (training or not) that the graph was exported in.
    ``around``: a context for eager's calls. Modules of torch's own (``MultiheadAttention``) ask whether a mode is on, and return
    something else then; so eager runs under the mode that the candidate, and its own eager forward, runs under.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        independent: list[dict[str, Any]],
        training: bool = False,
        around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self.module = module
        self.around = around
        self.watching: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext  # around eager's calls, too
        self.independent = independent
        self.training = training
        self.limits: list[str] = []
        self.double: torch.nn.Module | None = None
        self.lifts = False  # float64 runs only where conversions to float32 are lifted to float64
        self.moves: set[str] = set()  # paths of buffers and attributes that a call was seen to change
        self.first: dict[str, Any] = {}  # what attributes held before the first call that are of another kind since
        self.made: list[str] = []  # all attributes that are; every call but the first begins with what that left there
        self.called = False
        self.eval_part = ""  # as modes.put has it, of calls in train mode
        self.autocast = ""  # as autocast.on has it, of eager's calls; in float64 nothing is rounded
        self.seed: int | None = None  # where the module draws random numbers: what eager and the candidate start from
        self.replays = True  # float64 is given the numbers that eager drew
        self.drawn: list[tuple[str, torch.Tensor | None]] = []  # by eager's last call
        self._renew()

    def _renew(self) -> None:
        self.double = None  # first, so that there are never three copies of the weights
        try:
            self.double = widen(duplicate(self.module))
        except torch.OutOfMemoryError:
            if memory.limited():
                raise
            self.no_double(f"its weights alone take {memory.text(2 * memory.of_state(self.module))}")
        except Exception as error:
            self.no_double(f"the module cannot be copied: {type(error).__name__}")

    def no_double(self, why: str) -> None:
        """Do without float64 from now on, and say why in ``limits``, once."""
        self.double = None
        said = f"the reference is eager in its own precision, not float64 ({why})"
        if said not in self.limits:
            self.limits.append(said)

    def perturb(self, seed: int) -> None:
        """Move the weights off their initial values, as ``weights.perturb`` does."""
        weights.perturb(self.module, seed)
        self._renew()

    @contextlib.contextmanager
    def drawing(self, seed: int) -> Iterator[None]:
        """Within this context random numbers are drawn from ``seed`` on, and float64 is left out."""
        before = self.seed, self.replays
        self.seed, self.replays = seed, False
        try:
            yield
        finally:
            self.seed, self.replays = before

    def scale(self, factor: float, names: list[str] | None = None) -> None:
        """Multiply the weights, as ``weights.scale`` does."""
        weights.scale(self.module, factor, names)
        self._renew()

    def give(self, values: dict[str, torch.Tensor]) -> None:
        """Give parameters and buffers these values, by their names in the state_dict."""
        with torch.no_grad():
            for name, tensor in self.module.state_dict().items():
                tensor.copy_(values[name])
        self._renew()

    def moving(self) -> dict[str, Any]:
        """The values, as every call begins with them, of what calls have been seen to change in the module."""
        now = state.snapshot(self.module) if self.moves else {}
        return {path: now[path] for path in sorted(self.moves) if path in now}

    def call(self, tree: tuple[Any, Any], train: bool) -> tuple[Any, dict[str, Any]]:
        """Eager's result, and what the call changed in the module, which is put back."""
        return self._watched(tree, train)[:2]

    def _watched(self, tree: tuple[Any, Any], train: bool) -> tuple[Any, dict[str, Any], dict[str, list[int]]]:
        """The same, and what it did with plain attributes."""
        recording = draws.Recording() if self.seed is not None and self.replays else contextlib.nullcontext()
        if self.seed is not None:
            randomness.seed(self.seed)
        with torch.no_grad(), state.unchanged(self.module) as before:
            held = attributes.plain_tensors(self.module)
            with self.around(), recording, autocast.on(self.autocast), self.watching():
                self.put_in_mode(self.module, train)
                eager = channel.plain(self.module(*tree[0], **tree[1]))
            after = state.changed(self.module, before)
            after |= attributes.replaced(self.module, held, after)
            facts: dict[str, list[int]] = {}
            if after:
                other_tensors = [*tensors_of(tree), *tensors_of(eager)]
                facts = attributes.handled(self.module, held, before, other_tensors, after)
                eager = copied(eager)  # what is put back must not change the result
            first = {} if self.called else attributes.come_about(self.module, before, after)
        self.called = True
        self.drawn = recording.drawn if isinstance(recording, draws.Recording) else []
        self.moves |= after.keys()
        if first:  # from now on every call begins with what the first one left
            self.made = [*first]
            self.first = {path: before[path] for path in first if path in before}
            attributes.give(self.module, first)
            self._renew()
        return eager, after, facts

    def put_in_mode(self, module: torch.nn.Module, train: bool) -> None:
        """Put the module, or its copy in float64, into train mode or the mode that it is used in."""
        modes.put(module, train or self.training, self.eval_part)

    @contextlib.contextmanager
    def partly_in_eval_mode(self, part: str) -> Iterator[None]:
        """Within this context ``part`` is in eval mode in every call, as modes.put has it."""
        before, self.eval_part = self.eval_part, part
        try:
            yield
        finally:
            self.eval_part = before

    @contextlib.contextmanager
    def under_autocast(self, dtype: str) -> Iterator[None]:
        """Within this context eager's calls are made under autocast, as autocast.on has it."""
        before, self.autocast = self.autocast, dtype
        try:
            yield
        finally:
            self.autocast = before

    @contextlib.contextmanager
    def at_first(self) -> Iterator[None]:
        """Within this context attributes are as before the first call."""
        with attributes.at_first(self.module, self.first, self.made):
            self._renew()
            yield
        self._renew()

    def answer(self, tree: tuple[Any, Any], train: bool = False, seconds: float = float("inf")) -> Reference:
        """Both answers to (args, kwargs), without gradients; float64 on as much as takes ``seconds``.

        Raises:
            Exception: what eager raises.
            torch.OutOfMemoryError: float64 would fit, but for what other lanes of an evaluation have of the GPU: the verdict must not
                depend on them.
        """
        given = copied(tree)
        before = tensors_of(tree)
        watch = memory.Watch(before)
        # A step that puts a module of eval mode into training mode takes care of random numbers itself (checks).
        watched = train == self.training or not train
        random_state = randomness.state()
        settled = bool(self.made)
        eager, after, facts = self._watched(given, train)
        if bool(self.made) != settled:
            del given, eager
            return self.answer(tree, train, seconds)
        if watched and self.seed is None and randomness.state() != random_state:
            self.seed = SEED
            del given, eager
            return self.answer(tree, train, seconds)
        held = [t for v in vars(self.module).values() for t in tensors_of(v)]
        held += [*self.module.parameters(), *self.module.buffers()]
        kept = bool(after) or bool(aliasing.shared(tensors_of(eager), held))
        aliases = aliasing.shared(tensors_of(eager), tensors_of(given))
        mutated = [i for i, (a, b) in enumerate(zip(before, tensors_of(given), strict=True)) if not identical(a, b)]
        del given
        reference = Reference(eager, None, mutated, after=after, aliases=aliases, kept=kept, attributes=facts)
        if self.seed is not None and not self.replays:
            return reference
        if self.double is None:
            if self.seed is not None:
                return reference
            reference.exact = eager
            return reference
        # What eager took beside its inputs, twice as wide, and the inputs once more.
        need = 2 * (watch.taken() + sum(map(memory.size, before)))
        independent = self.independent if self.training or not train else []
        there = memory.free(before)
        if self.seed is not None:
            fits = need <= _SHARE * there
            if not fits:
                _raise_if_it_fits_alone(need, before)
            if not fits or not self._replayed(reference, tree, train):
                self._not_replayed()
            return reference
        if need <= _SHARE * there and (need <= _LITTLE or not independent):
            reference.exact = self._exact(tree, eager, train, reference.exact_after)
        elif independent and self._sliceable(tree, eager, independent[0]):
            reference.slices = lambda said_of: self._slices(said_of, tree, train, independent[0], need, seconds)
        elif need <= _SHARE * there:
            reference.exact = self._exact(tree, eager, train, reference.exact_after)
        else:
            _raise_if_it_fits_alone(need, before)
            reference.need, reference.there = need, there
            reference.said = (
                f"float64 at the example's own size: it would take {memory.text(need)}, there were {memory.text(there)}"
            )
        return reference

    def _not_replayed(self) -> None:
        if RANDOM not in self.limits:
            self.limits.append(RANDOM)

    def _replayed(self, reference: Reference, tree: tuple[Any, Any], train: bool) -> bool:
        """Whether float64 gave an answer to the numbers that eager drew, which ``reference`` then has."""
        after: dict[str, Any] = {}
        limits, double = list(self.limits), self.double
        exact = self._exact(tree, None, train, after)
        if exact is None or structure(exact) != structure(reference.eager):
            self.limits, self.double = limits, double
            self.replays = False
            return False
        if not compare(reference.eager, reference.eager, exact).eager_error <= _FAR:
            return False  # eager overflows here, or the numbers are others after all
        reference.exact, reference.exact_after, reference.drawn = exact, after, self.drawn
        return True

    def _sliceable(self, tree: Any, eager: Any, along: dict[str, Any]) -> bool:
        """Whether these are the shapes that the graph was about, and there is more than one slice."""
        tensors = tensors_of(tree)
        if len(tensors) != len(along["inputs"]) or len(tensors_of(eager)) != len(along["outputs"]):
            return False
        lengths = {t.shape[d] for t, d in zip(tensors, along["inputs"], strict=True) if d is not None}
        lengths |= {t.shape[d] for t, d in zip(tensors_of(eager), along["outputs"], strict=True)}
        return len(lengths) == 1 and lengths.pop() >= 2 * slices.LEAST

    def _slices(
        self, reference: Reference, tree: Any, train: bool, along: dict[str, Any], need: int, seconds: float
    ) -> Iterator[Part]:
        """float64 on slices of one dimension, spread evenly, until the time is over."""
        tensors = tensors_of(tree)
        size = next(t.shape[d] for t, d in zip(tensors, along["inputs"], strict=True) if d is not None)
        rows = max(slices.LEAST, min(size, int(size * min(_SLICE, memory.free(tensors) / 4) // max(need, 1))))
        bounds = slices.bounds(size, rows)
        began, done = time.monotonic(), 0
        for number, i in enumerate(slices.spread(len(bounds))):
            if number > 1 and time.monotonic() - began > seconds:
                break
            start, stop = bounds[i]
            exact = self._exact(slices.cut(tree, along["inputs"], start, stop), None, train)
            if exact is None:  # float64 does not run at all, and that was said
                break
            done += stop - start
            yield Part(start, stop, exact, along["outputs"])
            memory.wait(tensors)
        reference.said = ""
        if done < size:
            reference.said = f"float64 on all of the example: on {done} of {size} slices, and eager's own answer on all"

    def _exact(self, tree: tuple[Any, Any], eager: Any, train: bool, after: dict[str, Any] | None = None) -> Any:
        """``after`` gets what the call changed."""
        if self.double is None:
            return eager
        try:
            return self._wide_or_lifted(tree, train, after)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self.no_double(f"{type(error).__name__} there")
            return eager

    def _wide_or_lifted(self, tree: tuple[Any, Any], train: bool, after: dict[str, Any] | None) -> Any:
        """The result in float64, with conversions to float32 lifted from the first call on that needs it.

        Raises:
            Exception: what the module raises as it is, where it does not run lifted either.
        """
        if self.lifts:
            return self._in_float64(tree, train, after)
        try:
            return self._in_float64(tree, train, after)
        except (torch.OutOfMemoryError, draws.NotReplayable):
            raise
        except Exception as error:
            self.lifts = True
            try:
                return self._in_float64(tree, train, after)
            except torch.OutOfMemoryError:
                raise
            except Exception:
                self.lifts = False
                raise error from None

    def _in_float64(self, tree: tuple[Any, Any], train: bool, after: dict[str, Any] | None) -> Any:
        assert self.double is not None
        args, kwargs = doubled(copied(tree))
        with torch.no_grad(), self.made_wide(), state.unchanged(self.double) as before:
            with self.around(), self.drawing_the_same():
                self.put_in_mode(self.double, train)
                exact = channel.plain(self.double(*args, **kwargs))
            if after is not None:
                after |= state.changed(self.double, before)
            return copied(exact) if after else exact

    @contextlib.contextmanager
    def made_wide(self) -> Iterator[None]:
        """Tensors that a forward makes (a first state of zeros, a mask) are float64 unless it says otherwise, as are scaled products."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with ScaledProducts(), Lifted() if self.lifts else contextlib.nullcontext():
                yield
        finally:
            torch.set_default_dtype(before)

    @contextlib.contextmanager
    def drawing_the_same(self) -> Iterator[None]:
        """Within this context the module in float64 draws what eager's last call drew.

        Raises:
            draws.NotReplayable: it would draw others.
        """
        if self.seed is None:
            yield
            return
        randomness.seed(self.seed)  # for Python's and numpy's
        with draws.Replay(self.drawn) as replay:
            yield
        replay.finish()

    def eager(self, tree: tuple[Any, Any], train: bool = False) -> Any:
        """Eager's result alone."""
        return self.call(copied(tree), train)[0]

    def exact(
        self, tree: tuple[Any, Any], train: bool, drawn: list[tuple[str, Any]], after: dict[str, Any] | None = None
    ) -> Any:
        """The module's result in float64 alone; None where that does not run, which is not noted here.

        ``drawn``: the random numbers, as ``Reference.drawn``. ``after`` gets what the call changed.
        """
        limits, double = list(self.limits), self.double
        self.drawn = drawn
        found = self._exact(tree, None, train, after)
        self.limits, self.double = limits, double
        return found

    def work(self, tree: tuple[Any, Any]) -> torch_work.Work:
        """The operators that eager runs on ``tree``. The module's state and the random generators stay as they are."""
        args, kwargs = copied(tree)
        devices = sorted({t.device for t in tensors_of(tree) if t.device.type == "cuda"}, key=str)
        counting = torch_work.Counting()
        with torch.no_grad(), torch.random.fork_rng(devices), state.unchanged(self.module), counting:
            self.module(*args, **kwargs)
        return counting.work


def widen(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, buffers and plain attributes too."""
    attributes.widened(module)
    convert(module, torch.float64)
    return module


def _raise_if_it_fits_alone(need: int, tensors: list[torch.Tensor]) -> None:
    """Stop where float64 lacks memory that other lanes of an evaluation have.

    Raises:
        torch.OutOfMemoryError: it would fit if no other lane used the GPU.
    """
    if need <= _SHARE * memory.free_alone(tensors):
        raise torch.OutOfMemoryError(f"CUDA out of memory: float64 would take {memory.text(need)}")

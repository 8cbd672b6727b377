"""Which sides of a module's comparisons show in the answers that a candidate is compared by.

A kernel that is wrong in ``b`` of ``torch.where(x > 6, a, b)`` passes where no input has an element on that side, or where what is chosen
there comes into no result: another factor is zero, or both sides are NaN. So eager's calls are watched for comparisons. For each side
that elements are on, the module is called once more with the comparison's result replaced by that of the other side everywhere. Where
that gives another answer, by the standard that a candidate is held to, the side shows. Then it is not looked at again.

A comparison is known by its place in the source, and by how many were made there before in the call.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import kernel_lsp
from kernel_lsp import schema
from kernel_lsp.validation import agreement, channel, compare, memory, plan, randomness, sizes, state
from kernel_lsp.validation.duplicates import duplicate
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import copied, on_cpu
from kernel_lsp.validation.work import Work

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: operators of two operands that are numbers
ORDERED = ("gt", "lt", "ge", "le", "eq", "ne")
#: a comparison → that of the other side
_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Gt: ast.LtE, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.LtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
}
#: seconds of a usual machine (work.py) in a validation of one candidate: for calls with a comparison replaced, and for the search (reaching.py)
LOOKING, SEARCHING = 0.5, 0.5
#: said where the clock ended what the budget of work should end
CUT_SHORT = "some sides of comparisons: to look at them took too long here"
#: elements of the largest input above which a side is looked for at the smaller sizes alone
_MOST_ELEMENTS = 1 << 22
#: the share of the work for looking that one look may take at other sizes than the small ones
_MOST_OF_A_LOOK = 0.2
#: bytes in a second of a module that is copied to the CPU
_COPIED = 3e9
#: characters of a comparison that a limit shows
_SHOWN = 60
#: folders of frames in which no comparison of the user's is written
_LIBRARIES = tuple(os.path.abspath(one.__path__[0]) + os.sep for one in (kernel_lsp, torch))


@dataclass(frozen=True)
class Comparison:
    """One of a forward's. ``span``: the lines (1-based) and columns (bytes) of its expression; ``number``: of those there in one call."""

    path: str
    span: tuple[int, int, int, int]  # first line, last line, first column, column after the last
    operator: str  # of ``plan.COMPARISONS``
    number: int

    def said(self, side: bool) -> str:
        """``cosine <= -0.878 at model.py:12``, where ``side`` is what the comparison gives."""
        return f"{_words(self, side)} at {os.path.basename(self.path)}:{self.span[0]}"


@dataclass
class Sides:
    """What was seen of the comparisons in one call of eager's."""

    taken: dict[Comparison, set[bool]] = field(default_factory=dict)  # by elements
    work: Work = field(default_factory=Work)  # of the whole call


class Watching(TorchDispatchMode):
    """Within it every comparison of a forward goes through ``met``."""

    supports_higher_order_operators = True  # torch.cond and flex_attention, whose bodies are not looked into

    def __init__(self) -> None:
        super().__init__()
        self._counts: collections.Counter[tuple[Any, ...]] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        operator = func.overloadpacket.__name__ if isinstance(func, torch._ops.OpOverload) else ""
        if (
            operator not in plan.COMPARISONS
            or not isinstance(out, torch.Tensor)
            or out.is_meta
            or out.layout is not torch.strided
        ):
            return out
        if (place := _place()) is None:
            return out
        self._counts[place] += 1
        return self.met(Comparison(*place, operator, self._counts[place]), out, args)

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """The comparison's result, or another in its place. ``args``: of the operator."""
        raise NotImplementedError


class Taken(Watching):
    """Notes which sides elements are on, but of the comparisons of which both show; and what the call does."""

    def __init__(self, shown: dict[Comparison, set[bool]]) -> None:
        super().__init__()
        self.found: dict[Comparison, set[bool]] = {}
        self.work = Work()
        self._shown = shown

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        self.work.note(func, args, kwargs or {}, out)
        return out

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``."""
        if len(self._shown.get(comparison, ())) < 2 and out.numel():
            sides = {True} if bool(out.any()) else set()
            self.found[comparison] = sides if bool(out.all()) else sides | {False}
        return out


class _Replaced(Watching):
    """Gives ``value`` for one comparison, whatever is compared."""

    def __init__(self, comparison: Comparison, value: bool) -> None:
        super().__init__()
        self.comparison, self.value = comparison, value

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``, or as many times ``value``."""
        return torch.full_like(out, self.value) if comparison == self.comparison else out


@contextlib.contextmanager
def watching(referee: Referee) -> Iterator[None]:
    """Put into ``referee.sides`` what is seen in the call within the context."""
    with Taken(referee.progress.shown) as taken:
        yield
    referee.sides = Sides(taken.found, taken.work)


def note(referee: Referee, step: plan.Step, tree: Any, reference: Reference, seen: Sides) -> None:
    """Note the sides that show in an answer that the candidate was compared by. ``seen``: in eager's call."""
    small = sizes.small(referee.inputs)
    most = max(_MOST_ELEMENTS, referee.inputs.elements(small))
    if step.sizes is None or referee.inputs.elements(step.sizes) > most:
        return
    budget, seconds = referee.progress.looking, seconds_to_show(referee, seen.work)
    if step.sizes != small and seconds > _MOST_OF_A_LOOK * budget.most:
        return
    for comparison, taken in seen.taken.items():
        shown = referee.progress.shown.setdefault(comparison, set())
        for side in taken - shown:
            if not budget.has(seconds):  # it is taken to show: a limit has to be true
                shown.add(side)
                continue
            with budget.spending(seconds):
                if shows(referee, tree, reference, comparison, side, step.train):
                    shown.add(side)


def seconds_to_show(referee: Referee, work: Work) -> float:
    """What ``shows`` takes on a usual machine where eager's call does this ``work``."""
    if plan.takes_any_values(referee.inputs):
        return work.seconds(referee.inputs.device.type)
    return 2 * work.seconds("cpu") + memory.of_state(referee.module) / _COPIED


def shows(
    referee: Referee, tree: Any, reference: Reference, comparison: Comparison, side: bool, train: bool = False
) -> bool:
    """Whether a candidate that never takes ``side`` there would be found wrong by this answer."""
    try:
        if plan.takes_any_values(referee.inputs):
            with _Replaced(comparison, not side):
                other = agreement.plainly(referee.oracle.eager(tree, train))
            eager, exact = (agreement.plainly(one) for one in (reference.eager, reference.exact))
        else:  # the comparison may keep an index within its range, and an index out of range ends the CUDA context
            on_cpu = OnTheCpu(referee, tree, train)
            eager = exact = on_cpu.answer(contextlib.nullcontext())
            other = on_cpu.answer(_Replaced(comparison, not side))
        return not compare.compare(other, eager, eager if exact is None else exact).passed
    except Exception:  # it has no answer, or no memory is left to look
        return True


class OnTheCpu:
    """A copy of the module and of its inputs, without a GPU."""

    def __init__(self, referee: Referee, tree: Any, train: bool) -> None:
        self._oracle = referee.oracle
        self._module = duplicate(referee.module).cpu()
        self._tree = on_cpu(tree)
        self._oracle.put_in_mode(self._module, train)

    def answer(self, within: AbstractContextManager[Any]) -> Any:
        """The module's, each time from the same state, computed in the context."""
        if self._oracle.seed is not None:
            randomness.seed(self._oracle.seed)
        args, kwargs = copied(self._tree)
        with torch.no_grad(), state.unchanged(self._module), self._oracle.around(), within:
            return agreement.plainly(channel.plain(self._module(*args, **kwargs)))


def unshown(referee: Referee) -> list[tuple[Comparison, bool]]:
    """The sides that no answer showed so far."""
    return [(one, side) for one, sides in referee.progress.shown.items() for side in (True, False) if side not in sides]


def sides(referee: Referee) -> list[schema.Side]:
    """All sides of the comparisons that answers were compared in."""
    shown = referee.progress.shown.items()
    return [schema.Side(one.said(side), one.number, side in found) for one, found in shown for side in (True, False)]


def limits(referee: Referee, found: list[schema.Side]) -> list[str]:
    """The limits of a verdict about the sides that were ``found``."""
    said = [side.limit for side in found if not side.shown]
    if referee.progress.looking.cut_short or referee.progress.searching.cut_short:
        said.append(CUT_SHORT)
    return list(dict.fromkeys(said))


def _place() -> tuple[str, tuple[int, int, int, int]] | None:
    """Where the innermost frame is that is neither torch's nor ours."""
    frame = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_LIBRARIES, "<")):
            positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            first, last, begin, end = (number or 0 for number in positions)
            return path, (first, last, begin, end)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _words(comparison: Comparison, side: bool) -> str:
    first, last, begin, end = comparison.span
    lines = [line.encode() for line in linecache.getlines(comparison.path)[first - 1 : last]]
    text = ""
    if lines:
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
        text = b"".join(lines).decode(errors="replace")
    try:
        expression = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return f"a comparison ({comparison.operator}) is {str(side).lower()}"
    if isinstance(expression, ast.Compare) and len(expression.ops) == 1 and type(expression.ops[0]) in _OTHER:
        if not side:
            expression.ops = [_OTHER[type(expression.ops[0])]()]  # as it is written: torch gives ``1 > x`` as ``x < 1``
        if len(whole := _plain(expression)) <= _SHOWN:
            return whole
    elif len(whole := _plain(expression)) <= _SHOWN and _is_call(expression, comparison.operator):
        return f"{whole} is {str(side).lower()}"
    within = f" in {_plain(expression.func)}" if isinstance(expression, ast.Call) else ""
    return f"a comparison{within} is {str(side).lower()}"


def _is_call(expression: ast.expr, operator: str) -> bool:
    """Whether it is a call of the operator itself: ``x.gt(0)``, ``torch.isnan(x)``, ``torch.greater(a, b)`` is not."""
    if not isinstance(expression, ast.Call):
        return False
    return getattr(expression.func, "attr", getattr(expression.func, "id", "")) == operator


def _plain(expression: ast.expr) -> str:
    """The text of an expression without a blank before a parenthesis: there the reasons of limits begin, which short lines leave out."""
    return " ".join(ast.unparse(expression).split()).replace(" (", "(").replace(", [", ",[")

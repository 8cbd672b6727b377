"""Numbers and flags in attributes, which a program may change after it has constructed a module (``norm.eps = 1e-3``).

A kernel that has the constructor's number in its text gives the old answer then. Eager is asked which attributes its forward reads;
each is given another value in the module and in the candidate, one after the other. What changes nothing that shows says nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import agreement, answer_checks, compare, failures, plan
from kernel_lsp.validation.oracle import Reference

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: attributes that are changed, and those of which it is tried whether that shows
_MOST_CHANGED, _MOST_TRIED = 5, 12
_NUMBERS = (bool, int, float)
#: what all modules have
_OF_EVERY_MODULE = frozenset(["training", "dump_patches", "call_super_init"])


@dataclass(frozen=True)
class Number:
    """A number or flag in an attribute."""

    path: str  # of the module that has it, in the one that is validated; "" for that one
    name: str
    value: float
    of_class: bool  # it stands in the class, not in the object

    def __str__(self) -> str:
        return f"{self.path}.{self.name}" if self.path else self.name


def check(referee: Referee, step: plan.Step) -> None:
    """Change numbers that forward reads, one after the other, and compare.

    Raises:
        Failure: the candidate goes on with the number that there was before, or fails.
    """
    tree = step.make(referee.inputs)
    try:
        before = referee.oracle.answer(tree)
        numbers = read_by(referee, tree)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return  # the module itself does not take such inputs
    said: list[str] = []
    for number in numbers[:_MOST_TRIED]:
        if len(said) < _MOST_CHANGED and (value := _with_another(referee, step, tree, before, number)) is not None:
            said.append(f"{number} = {value!r}")
    if said:
        referee.passed(step.name, f"with {', with '.join(said)} in place of what the constructor gave")


def read_by(referee: Referee, tree: Any) -> list[Number]:
    """Those that eager reads in a call: of each kind of module each name once, floats first. None of what calls change."""
    with reads(referee.module) as found:
        referee.oracle.eager(tree)
    kinds = dict(referee.module.named_modules())
    numbers: dict[tuple[type, str], Number] = {}
    for number in found.values():
        if str(number) not in referee.oracle.moves:
            numbers.setdefault((type(kinds[number.path]), number.name), number)
    return sorted(numbers.values(), key=lambda number: type(number.value) is not float)


@contextlib.contextmanager
def reads(module: torch.nn.Module) -> Iterator[dict[tuple[str, str], Number]]:
    """What is read within the context of finite numbers and flags that attributes of the module, and of those in it, hold."""
    found: dict[tuple[str, str], Number] = {}
    paths = {id(child): path for path, child in module.named_modules()}

    def noted(self: torch.nn.Module, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if type(value) in _NUMBERS and name not in _OF_EVERY_MODULE and math.isfinite(value) and id(self) in paths:
            path = paths[id(self)]
            if (path, name) not in found and (number := _plain(self, path, name, value)) is not None:
                found[path, name] = number
        return value

    torch.nn.Module.__getattribute__ = noted  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        del torch.nn.Module.__getattribute__


def _plain(module: torch.nn.Module, path: str, name: str, value: Any) -> Number | None:
    """The number where it can be assigned: it lies in the object or in its class, and no property gives it."""
    if name.startswith("_") and type(module).__module__.startswith("torch."):
        return None
    if type(inspect.getattr_static(module, name)) not in _NUMBERS:
        return None
    return Number(path, name, value, name not in object.__getattribute__(module, "__dict__"))


def others(value: float) -> list[Any]:
    """Other values in its place, in the order in which they are tried."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        return list(dict.fromkeys([1.5 * value or 0.25, value + 0.25]))
    if value > 0:  # twice as much where it has to be a divisor; never 0, by which a loop may count
        return list(dict.fromkeys([value + 1, 2 * value, max(value - 1, 1)]))
    return [value + 1, value - 1]


def assign(module: torch.nn.Module, path: str, name: str, value: float | None) -> bool:
    """Give an attribute of the module, or of one in it, a value; None: it has its class's again. False where there is no such module."""
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        return False
    if value is not None:
        setattr(owner, name, value)
    elif name in vars(owner):
        delattr(owner, name)
    return True


@contextlib.contextmanager
def _assigned(referee: Referee, number: Number, value: float) -> Iterator[None]:
    """Within the context the module and its copy in float64 have another value."""
    modules = [m for m in (referee.module, referee.oracle.double) if m is not None]
    try:
        for module in modules:
            assign(module, number.path, number.name, value)
        yield
    finally:
        for module in modules:
            assign(module, number.path, number.name, None if number.of_class else number.value)


def _with_another(
    referee: Referee, step: plan.Step, tree: Any, before: Reference, number: Number
) -> float | bool | None:
    """The first value with which the module gives something else, once the candidate agrees there; None where there is none."""
    for value in others(number.value):
        try:
            with _assigned(referee, number, value):
                if not _shows(referee, tree, before):
                    continue
                reference = referee.oracle.answer(tree)
                return value if _compare(referee, step, tree, reference, number, value) else None
        except (failures.Failure, torch.OutOfMemoryError):
            raise
        except Exception:
            continue  # the module does not take that value
    return None


def _shows(referee: Referee, tree: Any, before: Reference) -> bool:
    """Whether what eager gives now would be wrong before."""
    eager, exact = (agreement.plainly(r) for r in (before.eager, before.exact))
    now = agreement.plainly(referee.oracle.eager(tree))
    return not compare.compare(now, eager, eager if exact is None else exact).passed


def _compare(referee: Referee, step: plan.Step, tree: Any, reference: Reference, number: Number, value: float) -> bool:
    """Whether the candidate has the attribute, and was compared.

    Raises:
        Failure: it gives something else than the module.
    """
    names = tuple(referee.inputs.names)
    checks = len(referee.progress.checks)
    place = {"do": "assign", "path": number.path, "name": number.name}
    request = answer_checks.request(referee, step)
    again = {**place, "value": None if number.of_class else number.value}
    try:
        if not referee.ask({**place, "value": value})["assigned"]:
            return False
        try:
            with referee.asking(request, (*tree, None), reference.eager, names) as answer:
                answer_checks.check(referee, step, answer, reference, tree, 0.0)
        except torch.OutOfMemoryError:  # other checks follow
            referee.ask(again)
            raise
        referee.ask(again)
    except failures.Failure as failure:
        if failure.status == "not-interpretable":
            referee.ask(again)
            raise
        del referee.progress.checks[checks:]
        reason = (
            f"after {number} = {value!r} on the module, where the constructor gave {number.value!r}: {failure.reason} "
            f"(compare self.{number} with its value in forward and run eager where it is another, or read it there)"
        )
        raise referee.failed(failure.status, step.name, reason, failure.line) from None
    return True

"""What a case is, how a file of cases adds one, and the candidates of a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

import torch
from torch import nn

import kernel_lsp.synthesis
from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule import chain_space, product_space, space
from kernel_lsp.synthesis.schedule.choices import choices
from kernel_lsp.synthesis.schedule.extents import shared_by
from kernel_lsp.synthesis.schedule.replay import Estimate


@dataclass
class Case:
    kind: type[nn.Module]
    inputs: Callable[[int], list[Any]]
    init: tuple[Any, ...] = ()
    kept: int = 0  # operators expected to stay torch calls
    tolerance: float = 2e-5
    kernels: int | None = None  # how many Triton kernels it should take
    halves: bool = False  # products are made of half precision ones, whether that pays or not
    steps: tuple[int, ...] = (0, 1, 3)  # of ``inputs``: the sizes at which it runs under the interpreter
    training: bool = False  # in training mode, where its buffers may change
    settled: bool = False  # the first call, in which attributes come into being, is eager's
    tf32: bool = True  # of those convolutions have the error of TF32
    thin: Literal["", "one", "both"] = (
        ""  # with ``halves``: products split their larger operand, or both, in their tiles
    )
    in_steps: bool = False  # products that one kernel multiplies split their operands into float16 in each step
    windows: bool = False  # with ``halves``: convolutions of few channels split their windows in their tiles
    tile_sums: bool = False  # tiles of convolutions reduce their pixels, whether that pays or not
    no_cache: bool = False  # L2 holds nothing of what a row reads by the time that the next one reads it
    by_lines: bool = False  # elementwise kernels go by lines as soon as these take fewer instructions
    in_rows: bool = False  # lanes have several rows of windows that share elements, however few there are
    precision: str = "strict"  # the setting; products are made of float16 ones whether that pays or not
    keep: bool = False  # packed weights are kept from call to call


CASES: dict[str, Case] = {}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def case(name: str, forward: Callable[..., Any], inputs: Callable[[int], list[Any]], **more: Any) -> None:
    """A module without state: ``forward`` takes self first."""
    kind = type(_camel(name), (nn.Module,), {"forward": forward, "__module__": __name__})
    CASES[name] = Case(kind, inputs, **more)


def module(
    name: str, kind: type[nn.Module], init: tuple[Any, ...], inputs: Callable[[int], list[Any]], **more: Any
) -> None:
    """An existing layer under a name of its own, so that a kernel file can import it."""
    own = type(_camel(name), (kind,), {"__module__": __name__})
    CASES[name] = Case(own, inputs, init=init, **more)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def proposed(case: Case, module: nn.Module, arguments: list[Any], origin: str) -> list[Candidate]:
    """The candidates of a case."""
    exported = capture(module, tuple(arguments), training=case.training)
    names = {"class_name": type(module).__name__, "import_from": origin}
    if case.tile_sums:
        with mock.patch.object(stages, "tile_sums_pay", lambda *_, **__: True):
            return proposed(dataclasses.replace(case, tile_sums=False), module, arguments, origin)
    if case.no_cache:
        with mock.patch.object(space, "shared_by", lambda kernel, hints, l2: shared_by(kernel, hints, 0)):
            return proposed(dataclasses.replace(case, no_cache=False), module, arguments, origin)
    if case.in_steps:
        always = mock.patch.object(chain_space, "_LEAST_GAIN", -1.0)
        with mock.patch.object(product_space, "halves_pay", lambda *_: True), always:
            return proposed(dataclasses.replace(case, in_steps=False), module, arguments, origin)
    if case.by_lines:
        with mock.patch.object(space, "LEAST_SAVED", -1.0):
            return proposed(dataclasses.replace(case, by_lines=False), module, arguments, origin)
    if case.in_rows:
        with mock.patch.object(space, "_BUSY", 0):
            return proposed(dataclasses.replace(case, in_rows=False), module, arguments, origin)
    if not case.halves and case.precision == "strict":
        return synthesize(module, exported, **names)
    pay = dict.fromkeys(("planes_pay", "float16_pays", "half_pays", "pointwise_pays"), lambda *_: True)
    pay |= {"windows_pay": lambda *_: case.windows}
    pay |= {"thin_pays": lambda *_: bool(case.thin), "both_pay": lambda *_: case.thin == "both"}
    with mock.patch.multiple(stages, tf32_convolutions=lambda: case.tf32, **pay):
        return synthesize(
            module, exported, gpu="H100", precision=case.precision, keep_packed_weights=case.keep, **names
        )


def made(
    case: Case, module: nn.Module, arguments: list[Any], origin: str, variant: str = "", *, every: bool = False
) -> Candidate:
    """The candidate of a case that leaves least to torch, and comes first; of those that have ``variant`` in their label, or end with it.

    Launches come before their replay, which the interpreter cannot run, though they take much longer for such small inputs.

    ``every``: the others are written, too.
    """
    with mock.patch.object(Estimate, "much_faster", False):
        if variant or every:
            found = [one for one in proposed(case, module, arguments, origin) if variant in one.variant]
        else:  # the first one has the default schedules: the others take as long to write as it does
            with mock.patch.object(kernel_lsp.synthesis, "choices", lambda *given: choices(*given)[:1]):
                found = proposed(case, module, arguments, origin)
    return min(found, key=lambda one: (sum(one.kept.values()), not one.variant.endswith(variant)))


def positive(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) * 0.9 + 0.05

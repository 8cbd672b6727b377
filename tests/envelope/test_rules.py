"""One list of rules for both kinds of kernel: those that the synthesizer wrote, and those that a language model wrote."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.envelope.sizes import Sizes, range_conditions, size_conditions
from kernel_lsp.generators.spelling import spelled_out
from kernel_lsp.slicing.conditions import conditions as of_a_model
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.printing.envelope import conditions as by_rule
from kernel_lsp.synthesis.printing.envelope import name_arguments


class Normed(nn.Module):
    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(size)
        self.drop = nn.Dropout(0.1)
        self.scale = 2.0
        self.table = torch.ones(3, 4).t()  # neither parameter nor buffer

    def forward(self, x: torch.Tensor, shift: float = 0.5) -> torch.Tensor:
        return self.drop(self.norm(x)) * self.scale + shift


class Doubled(nn.Module):
    """The sizes of the first argument follow from the second one's."""

    def forward(self, both: torch.Tensor, one: torch.Tensor) -> torch.Tensor:
        return torch.cat([one, one], 0) + both


CASES: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "normed": (Normed(), (torch.randn(5, 8),)),
    "doubled": (Doubled(), (torch.randn(6, 4), torch.randn(3, 4))),
    "embedding": (nn.Embedding(7, 5), (torch.randint(7, (4, 3)),)),
    "transposed": (nn.Linear(6, 3), (torch.randn(6, 5).t(),)),
}


def both(name: str) -> tuple[list[str], list[str]]:
    """The conditions by rule, without comments, and of a model's kernel, without the names that they give to parameters."""
    module, inputs = CASES[name]
    exported = capture(module.eval(), inputs)
    signature = Signature(module, *exported.example_inputs)
    graph = lower(exported)
    name_arguments(graph, signature)
    used = [(f"p{i}", v) for i, v in enumerate(graph.inputs)]
    ours = by_rule(module, graph, signature, used, [], contiguous=[])
    written = [text for text in ours if not text.startswith("#")], of_a_model(module, signature, exported)[0]
    return tuple(map(_nameless, written))  # type: ignore[return-value]


def _nameless(conditions: list[str]) -> list[str]:
    joined = spelled_out("class A:\n    def _in_envelope(self):\n        return (\n" + "\nand ".join(conditions) + ")")
    conditions = joined.partition("return (\n")[2].removesuffix(")").split("\nand ")
    names = dict(re.findall(r"type\((\w+) := ([\w.]+)\)", " ".join(conditions)))
    for name, source in names.items():
        conditions = [re.sub(rf"\b{name} := {re.escape(source)}\b", source, c) for c in conditions]
        conditions = [re.sub(rf"\b{name}\.", f"{source}.", c) for c in conditions]
    return conditions


@pytest.mark.parametrize("name", CASES)
def test_what_holds_for_a_kernel_by_rule_holds_for_one_of_a_model_and_that_is_more(name: str) -> None:
    ours, theirs = both(name)
    assert len(ours) > 5
    # gradients are named for what is read: a model's kernel may read all of the module's state
    assert {c for c in ours if "is_grad_enabled" not in c} < set(theirs)


def test_conditions_by_rule_stand_under_what_they_are_about() -> None:
    module, inputs = CASES["transposed"]
    exported = capture(module.eval(), inputs)
    signature = Signature(module, *exported.example_inputs)
    graph = lower(exported)
    name_arguments(graph, signature)
    weight = next(v for v in graph.inputs if v.name == "weight")
    written = by_rule(module, graph, signature, [("weight", weight)], ["input.shape[0] < 9"], contiguous=[weight])
    groups: dict[str, list[str]] = {}
    for text in written[written.index("# argument input") :]:
        groups.setdefault(text, []) if text.startswith("#") else groups[[*groups][-1]].append(text)
    assert groups["# weight"][-1] == "weight.is_contiguous()" and len(groups["# weight"]) == 5
    assert groups["# sizes"] == ["input.shape[0] < 9"]
    assert all(groups.values()), "a heading over nothing"


def test_many_tensors_that_differ_in_their_sizes_alone_are_in_a_table() -> None:
    module = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 5))
    exported = capture(module.eval(), (torch.randn(4, 6),))
    signature = Signature(module, *exported.example_inputs)
    graph = lower(exported)
    name_arguments(graph, signature)
    held = [v for v in graph.inputs if v.name != "input"]
    used = [(v.name, v) for v in held]
    written = by_rule(module, graph, signature, used, [], contiguous=held)
    table = next(text for text in written if text.startswith("(tensors := "))
    (of_each,) = (text for text in written if "is_contiguous" in text)
    assert table.count("_parameters[") == 4 and "zip(tensors, ((" in of_each and "(5, 3), (5,)" in of_each
    assert "any(t.requires_grad" in " ".join(written)
    text = " and ".join(text for text in written if not text.startswith("#"))
    holds = eval(f"lambda self, torch, _DEVICE, _PLAIN, _MOST_ELEMENTS, input: {text}")
    known = torch, "cpu", (torch.Tensor, nn.Parameter), 99, torch.randn(4, 6)
    assert not holds(module, *known)
    with torch.no_grad():
        assert holds(module, *known)
        assert not holds(module.half(), *known)
    # one that kernels read as it lies, wherever that is, has conditions of its own, and so have all
    assert not any(":= (" in text for text in by_rule(module, graph, signature, used, [], contiguous=held[1:]))


def test_a_model_may_rely_on_layout_and_on_tensors_that_are_not_registered() -> None:
    ours, theirs = both("transposed")
    assert "input.stride() == (1, 5)" in set(theirs) - set(ours)
    ours, theirs = both("normed")
    assert "self.table.stride() == (1, 4)" in set(theirs) - set(ours)


@pytest.mark.parametrize("kind", [0, 1], ids=["by rule", "of a model"])
def test_a_size_that_follows_from_a_later_argument_is_checked_with_its_name(kind: int) -> None:
    written = both("doubled")[kind]
    assert "both.shape[0] == 2 * one.shape[0]" in written
    assert not any(re.search(r"\bs\d+\b", c) for c in written), "a symbol that the class does not know"


def test_ranges_and_equal_sizes_are_written_with_the_python_of_their_symbols() -> None:
    n, m = sympy.symbols("n m", integer=True, positive=True)
    symbols: dict[sympy.Symbol, str] = {}
    later: list[tuple[str, sympy.Expr]] = []
    assert size_conditions("x", (n, m, 2 * n), symbols, later) == [
        "x.dim() == 3",
        "x.shape[2] == 2 * x.shape[0]",
        "0 < x.numel() < _MOST_ELEMENTS",
    ]
    assert later == []
    sizes = Sizes({n: (4, 100), m: (2, None)}, [(n + 1, m), (n + 1, m)])
    assert range_conditions(sizes, symbols) == [
        "x.shape[0] >= 4",
        "x.shape[0] <= 100",
        "x.shape[0] + 1 == x.shape[1]",
    ]


def test_arguments_that_the_graph_has_otherwise_are_not_guessed() -> None:
    signature = Signature(Doubled(), (torch.ones(2, 1), torch.ones(1, 1)), {})
    assert signature.flattened(2) == ["both", "one"]
    with pytest.raises(Unwritable, match="could not be matched"):
        signature.flattened(1)

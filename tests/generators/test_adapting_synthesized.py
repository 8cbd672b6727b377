"""What the synthesizer wrote for one class is made into another's: paths in the envelope, and files that replay."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.export import ExportedProgram

from kernel_lsp.class_schema import Specimen, TensorSpec
from kernel_lsp.envelope.identity import identified
from kernel_lsp.envelope.interface import interface_of
from kernel_lsp.generators.adapting import Origin, adapted
from kernel_lsp.packed_weights import keeps
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis.printing.packed_modules import written


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = torch.relu(step(x))
        return x


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three, self.four = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        for layer in (self.one, self.two, self.three, self.four):
            hidden = torch.relu(layer(hidden))
        return hidden


def both() -> tuple[ExportedProgram, Callable[[str], str]]:
    """The graph of one class, and what makes the text of a kernel for it into one for the other."""
    exported = {kind: capture(kind().eval(), (torch.randn(3, 8),)) for kind in (Tower, Chain)}
    (graph, before), (same, now) = (identified(one) for one in exported.values())
    assert graph == same
    interface = interface_of(Chain().eval(), exported[Chain])
    assert interface is not None
    spec = TensorSpec("x", [3, 8], "float32")
    origin = Origin("Tower", ["x"], [spec], before)
    to = TensorSpec("hidden", [3, 8], "float32")
    specimen = Specimen("Chain", "chains", "", "", [to], forward=["hidden"], state=now)
    return exported[Tower], lambda source: adapted(source, origin, specimen, interface)


def test_every_candidate_of_one_class_serves_another_with_the_same_graph() -> None:
    exported, to_chain = both()
    made = synthesize(Tower().eval(), exported, class_name="Tower", import_from="towers")
    assert "replayed as a CUDA graph" in [one.variant for one in made]
    for one in made:
        text = to_chain(one.source)
        envelope = text.partition("def _in_envelope")[2]
        assert "class ChainTriton(Chain):" in text and "from chains import Chain" in text
        assert "self.steps" not in envelope and "_modules[" not in envelope
        assert "self.four.weight, self.four.bias" in envelope and "_parameters[" not in envelope
        assert "type(self.four) is torch.nn.Linear" in envelope
        if one.variant == "replayed as a CUDA graph":
            assert "return _replayed(self, " in text and "(hidden,), held)" in text


def test_one_that_keeps_packed_weights_does_so_for_the_other_class() -> None:
    _, to_chain = both()
    made = [one for one in written(Tower().eval(), torch.randn(3, 8)) if keeps(one.source)]
    assert {"_graphs = " in one.source for one in made} == {True, False}
    for one in made:
        text = to_chain(one.source)
        assert keeps(text) and "_forget(self)" in text and "def chain_packed(" in text
        assert "*_packed(self, held))" in text or "return _replayed(self, chain, (hidden,), held)" in text

"""What the synthesizer wrote for one class is made into another's: paths in the envelope, and files that replay."""

from __future__ import annotations

import torch
from torch import nn

from kernel_lsp.class_schema import Specimen, TensorSpec
from kernel_lsp.envelope.identity import identified
from kernel_lsp.envelope.interface import interface_of
from kernel_lsp.generators.adapting import Origin, adapted
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


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


def test_every_candidate_of_one_class_serves_another_with_the_same_graph() -> None:
    exported = {kind: capture(kind().eval(), (torch.randn(3, 8),)) for kind in (Tower, Chain)}
    (graph, before), (same, now) = (identified(one) for one in exported.values())
    assert graph == same
    interface = interface_of(Chain().eval(), exported[Chain])
    assert interface is not None
    spec = TensorSpec("x", [3, 8], "float32")
    origin = Origin("Tower", ["x"], [spec], before)
    to = TensorSpec("hidden", [3, 8], "float32")
    specimen = Specimen("Chain", "chains", "", "", [to], forward=["hidden"], state=now)
    made = synthesize(Tower().eval(), exported[Tower], class_name="Tower", import_from="towers")
    assert "replayed as a CUDA graph" in [one.variant for one in made]
    for one in made:
        text = adapted(one.source, origin, specimen, interface)
        envelope = text.partition("def _in_envelope")[2]
        assert "class ChainTriton(Chain):" in text and "from chains import Chain" in text
        assert "self.steps" not in envelope and "_modules[" not in envelope
        assert "self.four.weight, self.four.bias" in envelope and "_parameters[" not in envelope
        assert "type(self.four) is torch.nn.Linear" in envelope
        if one.variant == "replayed as a CUDA graph":
            assert "return _replayed(self, " in text and "(hidden,), held)" in text

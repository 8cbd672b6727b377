"""Modules and tensors are looked up once, in nn.Module's dictionaries, and what is written means the same."""

from __future__ import annotations

import ast

import torch
from torch import nn

from kernel_lsp.envelope.lookups import looked_up_once
from kernel_lsp.generators.spelling import spelled_out


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)])
        self.x = nn.BatchNorm1d(3)


def conditions() -> list[str]:
    return [
        "type(self.layers) is torch.nn.ModuleList",
        "[*self.layers._modules] == ['0', '1']",
        "type(self.layers[0]) is torch.nn.Linear",
        "type(self.layers[1]) is torch.nn.Linear",
        "type(self.x) is torch.nn.BatchNorm1d",
        "type(self.layers[0].weight) in _PLAIN",
        "self.layers[0].weight.shape == (3, 3)",
        "type(self.x.running_mean) in _PLAIN",
        "self.x.running_mean.device == x.device and self.layers[1].bias is None",
        "self.name == 'self.layers[0]'",
        "not any(m._forward_hooks for m in (self.layers, self.layers[0], self.layers[1], self.x))",
    ]


TENSORS = {"self.layers[0].weight": "weight", "self.x.running_mean": "mean"}


def test_each_is_named_where_its_type_is_asked_for_and_by_that_name_from_there_on() -> None:
    assert looked_up_once(conditions(), Inner(), TENSORS, {"x"}) == [
        'type(layers := self._modules["layers"]) is torch.nn.ModuleList',
        "[*layers._modules] == ['0', '1']",
        'type(layers_0 := layers._modules["0"]) is torch.nn.Linear',
        'type(layers_1 := layers._modules["1"]) is torch.nn.Linear',
        'type(x_ := self._modules["x"]) is torch.nn.BatchNorm1d',  # forward has an argument x
        'type(weight := layers_0._parameters["weight"]) in _PLAIN',
        "weight.shape == (3, 3)",
        'type(mean := x_._buffers["running_mean"]) in _PLAIN',
        'mean.device == x.device and layers_1._parameters["bias"] is None',
        "self.name == 'self.layers[0]'",
        "not any(m._forward_hooks for m in (layers, layers_0, layers_1, x_))",
    ]


def test_what_has_no_type_asked_for_is_left_as_it_is() -> None:
    assert looked_up_once(["self.x.eps == 1", "type(self.x) is int", "self.x.eps == 1"], Inner(), {}, set()) == [
        "self.x.eps == 1",
        'type(x := self._modules["x"]) is int',
        "x.eps == 1",
    ]


def test_paths_that_are_no_identifiers() -> None:
    module = nn.Module()
    module.add_module("a-b", nn.Linear(2, 2))
    module.add_module("class", nn.Linear(2, 2))
    found = looked_up_once(
        ['type(getattr(self, "a-b")) is torch.nn.Linear', 'type(getattr(self, "class")) is torch.nn.Linear'],
        module,
        {},
        set(),
    )
    assert found[0] == 'type(a_b := self._modules["a-b"]) is torch.nn.Linear'
    assert found[1] == 'type(class_ := self._modules["class"]) is torch.nn.Linear'


def test_a_kernel_of_another_class_is_compared_by_paths() -> None:
    named = looked_up_once(conditions(), Inner(), TENSORS, {"x"})
    text = "class A:\n    def _in_envelope(self, x):\n        return (\n            {})"
    found = ast.unparse(ast.parse(spelled_out(text.format("\n            and ".join(named)))))
    for source, name in TENSORS.items():
        assert f"type({name} := {source})" in found or f"type(({name} := {source}))" in found
    assert "_modules[" not in found and "layers_0" not in found and "x_" not in found
    assert "getattr" not in found and "weight.shape == (3, 3)" in found and "self.layers[1].bias is None" in found


def test_it_holds_for_the_module_and_not_for_one_without_the_part() -> None:
    module = Inner()
    module.name = "self.layers[0]"
    text = " and ".join(looked_up_once(conditions(), module, TENSORS, {"x"}))
    known = {"torch": torch, "_PLAIN": (torch.Tensor, nn.Parameter), "x": torch.ones(1)}
    assert eval(text, {**known, "self": module})
    module.layers[0].weight = nn.Parameter(torch.ones(2, 3))
    assert not eval(text, {**known, "self": module})

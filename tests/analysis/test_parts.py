"""Which class of a file its ``get_inputs()`` is for, where some are parts of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.analysis import Source, module_classes
from kernel_lsp.analysis.parts import holders

PATH = Path("/nowhere/net.py")
SHARED = "def get_inputs(): return []\n"


def text(**parts: str) -> str:
    """Classes that instantiate what is named; A="B C" makes A of B and C."""
    head = "from torch import nn\n"
    body = "class {}(nn.Module):\n    def __init__(self):\n        self.parts = [{}]\n"
    return head + "".join(body.format(n, ", ".join(f"{p}(1)" for p in held.split())) for n, held in parts.items())


@pytest.mark.parametrize(
    ("source", "wholes"),
    [
        (text(Norm="", Model="Norm") + SHARED, {"Norm": "Model"}),
        (text(Model="Norm", Norm="") + SHARED, {"Norm": "Model"}),
        (text(Norm="", Block="Norm", Model="Block Block") + SHARED, {"Norm": "Model", "Block": "Model"}),
        (text(Norm="", Model="Norm", Other="") + SHARED, {"Norm": "Model"}),
        (text(Norm="", Model="Norm"), {}),
        (text(Norm="", Model="") + SHARED, {}),
        (text(Norm="", Model="Norm") + SHARED + "def get_inputs_Norm(): return []\n", {}),
        (text(Norm="", Model="Norm") + SHARED + "def get_inputs_Model(): return []\n", {}),  # it is for Norm, then
        (text(One="Two", Two="One") + SHARED, {}),
        # a wrapper around the main class does not take its inputs away, where that has KernelBench's name
        (text(Model="", Ensemble="Model Model") + SHARED, {}),
        (text(Norm="", Model="Norm", Ensemble="Model") + SHARED, {"Norm": "Model"}),
        (text(Head="", Model="", Ensemble="Model Head") + SHARED, {"Head": "Ensemble"}),
        (text(Net="", Ensemble="Net Net") + SHARED, {"Net": "Ensemble"}),
        (text(Net="", Ensemble="Net Net") + SHARED + "def get_inputs_Net(): return []\n", {}),
        (text(Norm="", Model="Norm") + "norm = Norm(1)\n" + SHARED, {"Norm": "Model"}),
        (text(Norm="", Model="") + "norm = Norm(1)\n" + SHARED, {}),
        (text(Tree="Tree", Model="") + SHARED, {}),
        (text(Norm="", Model="nn.Norm MyNorm Norm.make") + "    # Norm(1)\n    'Norm(1)'\n" + SHARED, {}),
    ],
)
def test_which_class_the_inputs_of_a_file_are_for(source: str, wholes: dict[str, str]) -> None:
    classes = module_classes(source, PATH)
    assert {c.name: c.whole for c in classes if c.whole} == wholes
    assert all(c.inputs is None for c in classes if c.whole)


def test_a_generic_class_is_a_part_where_it_is_instantiated_with_its_type() -> None:
    source = text(Stage="", Kind="") + "class Net(nn.Module):\n    def __init__(self):\n"
    source += "        self.parts = [Stage[int](1), Kind[0], Kind[1].of(2)]\n"
    classes = module_classes(source, PATH)
    assert holders(Source(source), ["Stage", "Kind"], classes) == {"Stage": ["Net"], "Kind": []}


def test_names_in_other_letters_and_nested_classes() -> None:
    source = text(Größe="", Norm="Größe") + "class Outer(nn.Module):\n    class Inner(nn.Module):\n        pass\n"
    source += "    def forward(self, x):\n        return Outer.Inner()(Norm (2)(x))\n"
    classes = module_classes(source, PATH)
    names = [c.name for c in classes]
    assert names == ["Größe", "Norm", "Outer", "Outer.Inner"]
    held = holders(Source(source), names, classes)
    assert held == {"Größe": ["Norm"], "Norm": ["Outer"], "Outer": [], "Outer.Inner": ["Outer"]}
    assert holders(Source(source), [], classes) == {}

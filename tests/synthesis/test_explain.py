"""What ``explain`` tells of each stage, on modules whose stages are known."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.commands.explain_text import print_stages
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.explain import STAGES, explain
from tests.synthesis.cases import CASES


def explained(module: nn.Module, *inputs: torch.Tensor, **options: Any) -> dict[str, Any]:
    """The stages of a module; that they are JSON data is checked, too."""
    module.eval()
    found = explain(module, capture(module, inputs), class_name=type(module).__name__, **options)
    assert json.loads(json.dumps(found)) == found
    return found


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / 0.7, -1)


class Mixed(nn.Module):
    """A convolution, a reduction and a call of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x)).mean((2, 3))
        return torch.softmax(torch.sort(y, -1)[0], -1)


class Long(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.exp(x).sum(), torch.cumsum(x, 1)


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(x)[0]


def test_a_softmax_is_one_kernel_with_two_reductions() -> None:
    module = Softmax()
    found = explained(module, torch.randn(64, 1000))
    assert found["error"] is None
    graph = {value["name"]: value for value in found["graph"]["values"]}
    assert graph["x"]["text"] == "argument x" and graph["softmax"]["formula"] == "softmax(x / 0.7, dim=1)"
    assert graph["numerator"]["operands"] == ["shifted"] and graph["row_max"]["shape"][1] == "1"
    rows, columns = found["graph"]["sizes"]
    assert (rows["is"], rows["example"], columns["is"], columns["example"]) == ("x.shape[0]", 64, "x.shape[1]", 1000)
    assert found["graph"]["outputs"] == ["softmax"] and found["graph"]["torch"] == []

    (kernel,) = found["kernels"]
    assert kernel["stores"] == [{"value": "softmax", "index": ["k0", "r1"], "formula": "softmax(x / 0.7, dim=1)"}]
    assert kernel["domain"] == {
        "kept": [{"atom": "k0", "size": rows["symbol"], "example": 64}],
        "reduced": [{"atom": "r1", "size": columns["symbol"], "example": 1000}],
        "split": {},
    }
    assert [(fold["kind"], fold["of"], fold["operand"]) for fold in kernel["folds"]] == [
        ("reduction", "max", "ratio"),
        ("reduction", "sum", "numerator"),
    ]
    assert [load["value"] for load in kernel["loads"]] == ["x"]


def test_the_text_is_that_of_the_candidate_with_the_default_schedule() -> None:
    module = Mixed().eval()
    exported = capture(module, (torch.randn(4, 3, 16, 16),))
    found = explain(module, exported, class_name="Mixed", stages=["text"])
    assert [found[stage] is None for stage in STAGES] == [True, True, True, False]
    made = synthesize(module, exported, class_name="Mixed", import_from="mixed")
    source = next(one for one in made if not one.variant).source
    assert [kernel["steps"] for kernel in found["text"]["kernels"]] == [[1], [2], [4]]
    for one in [*found["text"]["kernels"], found["text"]["host"]]:
        assert one["source"] in source
        assert f"def {one['name']}(" in one["source"]


def test_a_convolution_a_reduction_and_a_call_of_torch_in_order() -> None:
    found = explained(Mixed(), torch.randn(4, 3, 16, 16))
    assert [step["kind"] for step in found["kernels"]] == ["kernel", "kernel", "torch call", "kernel"]
    product, mean, sort, softmax = found["kernels"]

    contraction = product["contraction"]
    roles = {axis["axis"]: (axis["role"], axis["example"]) for axis in contraction["axes"]}
    assert contraction["equation"] == "ocij,nctuij->notu"
    assert roles["o"] == ("rows", 8) and roles["n"] == ("columns", 4) and roles["c"] == ("summed", 3)
    assert contraction["left_loads"] == ["conv_weight"] and contraction["right_loads"] == ["x"]
    assert {load["value"] for load in product["loads"]} == {"conv_weight", "x", "conv_bias"}
    assert mean["contraction"] is None and [fold["dims"] for fold in mean["folds"]] == [[2, 3]]
    assert sort["operator"] == "aten.sort.default"
    assert sort["loads"] == [mean["stores"][0]["value"]] and sort["stores"] == [softmax["loads"][0]["value"]]

    (call,) = found["graph"]["torch"]
    assert call["operator"] == "aten.sort.default" and call["why"] == "no lowering is registered for it"
    window = next(value["view"] for value in found["graph"]["values"] if value["text"] == "window(x)")
    assert len(window["guard"]) == 2 and window["index"][2] == "2 * dim2 + dim4 - 1" and window["pad"] == "0.0"
    named = {size["symbol"]: size["is"] for size in found["graph"]["sizes"] if size["named"]}
    assert set(named) == {"out_height", "out_width"} and "// 2) + 1" in named["out_height"]


def test_operators_that_are_left_to_torch() -> None:
    module = Mixed().eval()
    exported = capture(module, (torch.randn(4, 3, 16, 16),))
    found = explain(module, exported, class_name="Mixed", left=frozenset(["aten.conv2d"]))
    assert [step["kind"] for step in found["kernels"]][:2] == ["torch call", "kernel"]
    assert {call["operator"]: call["why"] for call in found["graph"]["torch"]} == {
        "aten.conv2d.default": "it was left to torch",
        "aten.sort.default": "no lowering is registered for it",
    }
    source = synthesize(module, exported, class_name="Mixed", import_from="mixed")[0].source
    assert found["text"]["host"]["source"] in source


def test_why_an_operator_with_a_lowering_stays_with_torch() -> None:
    class Unusual(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.exp(torch.matmul(x, y))

    found = explained(Unusual(), torch.randn(8, 4, dtype=torch.float64), torch.randn(4, 8, dtype=torch.float64))
    (call,) = found["graph"]["torch"]
    assert call["operator"].startswith("aten.matmul") and "float64" in call["why"]


def test_chunks_of_long_reductions_and_scans() -> None:
    found = explained(Long(), torch.randn(3, 100_000))
    sizes = {size["symbol"]: size for size in found["graph"]["sizes"]}
    assert sizes["n_chunks"]["is"].startswith("ceil(") and sizes["n_chunks"]["example"] == -(-300_000 // 16384)
    kernels = found["kernels"]
    assert [kernel["in_chunks"] for kernel in kernels] == [True, False, True, False, True]
    assert kernels[0]["stores"][0]["index"][0] == "chunk"
    assert kernels[-1]["folds"][0]["kind"] == "scan" and "ends" in {load["value"] for load in kernels[-1]["loads"]}


def test_schedules_are_ranked_for_the_target() -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.relu(x @ y)

    inputs = torch.randn(512, 256), torch.randn(256, 512)
    default, other = (explained(Product(), *inputs, stages=["schedule"], target_name=name) for name in (None, "L4"))
    assert (default["schedule"]["target"]["name"], other["schedule"]["target"]["name"]) == ("H100", "L4")
    seconds = []
    for found in (default, other):
        (kernel,) = found["schedule"]["kernels"]
        chosen, *others = kernel["schedules"]
        assert kernel["step"] == 1 and len(others) >= 2
        assert chosen["chosen"] and not any(one["chosen"] for one in others)
        estimates = [one["cost"]["seconds"] for one in others]
        assert estimates == sorted(estimates)
        assert chosen["cost"]["shared"] > 0 and chosen["cost"]["operations"] > 0
        assert chosen["parameters"]["m"] >= 16 and chosen["kind"] == "Product"
        seconds.append(chosen["cost"]["seconds"])
    assert seconds[1] > seconds[0]


def test_what_comes_before_the_end_is_told_where_there_is_no_kernel() -> None:
    found = explained(Sorted(), torch.randn(8, 8))
    assert found["error"]["code"] == "NothingToLower"
    assert [step["kind"] for step in found["kernels"]] == ["torch call"]
    assert found["graph"]["torch"] and found["schedule"] is None and found["text"] is None


@pytest.mark.parametrize("check_indices", [False, True])
def test_indices_that_are_computed_are_stored_where_they_are_checked(check_indices: bool) -> None:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 16)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.exp(self.table(x + y))

    index = torch.arange(5)
    found = explained(Embedded(), index, index, check_indices=check_indices)
    assert len(found["kernels"]) == 1 + check_indices
    assert ("_check_indices(" in found["text"]["host"]["source"]) == check_indices


@pytest.mark.parametrize(
    "name",
    ["embedding", "gathered", "stacked", "causal", "reflected", "self_attention", "cumsum_long", "nested_outputs"],
)
def test_every_sort_of_value_is_printed_in_120_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    found = explained(case.kind(*case.init), *case.inputs(0), stages=["graph", "kernels", "schedule"])
    assert found["error"] is None
    print_stages(found)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    for value in found["graph"]["values"]:
        assert any(line.startswith(f" {value['name']} ") for line in lines)


def test_formulas_of_deep_graphs_stay_short() -> None:
    class Deep(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(100):
                x = torch.sin(x) + 1
            return x

    found = explained(Deep(), torch.randn(4, 8), stages=["graph"])
    assert len(found["graph"]["values"]) == 201
    assert max(len(value["formula"]) for value in found["graph"]["values"]) < 100


def test_divided_indices() -> None:
    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.GroupNorm(4, 12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x).reshape(x.shape[0], 3, 4, -1).amax(2)

    found = explained(Grouped(), torch.randn(2, 12, 8, 8), stages=["graph", "kernels"])
    back = next(value for value in found["graph"]["values"] if value["text"] == "reshape(normalized)")
    assert back["view"]["index"][1:3] == ["(dim1 // 3)", "(dim1 % 3)"]
    assert not any("Quotient" in text or "Remainder" in text for text in json.dumps(found).split())


def test_an_atom_that_is_split() -> None:
    class Weighted(nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, -1).reshape(x.shape[0], 4, 3) * w

    found = explained(Weighted(), torch.randn(64, 12), torch.randn(4, 1), stages=["kernels"])
    (kernel,) = found["kernels"]
    assert kernel["domain"]["split"] == {"r1": "r1i + 3 * r1o"}
    assert [(atom["atom"], atom["size"]) for atom in kernel["domain"]["reduced"]] == [("r1o", "4"), ("r1i", "3")]

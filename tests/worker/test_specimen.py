"""What introspect finds out of modules of different shapes and homes."""

from __future__ import annotations

import pytest

from tests.worker.worker_client import WorkerError

HEAD = "import torch\nfrom torch import nn\n"


def test_a_module_with_a_dynamic_batch(worker, write):
    text = """
class Head(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(width, 3)
        self.register_buffer("offset", torch.zeros(3))
    def forward(self, x, mask):
        return {"logits": (self.linear(x) + self.offset) * mask}
def get_inputs():
    return [torch.randn(5, 16), torch.ones(5, 1)]
def get_init_inputs():
    return [[16], {"scale": 2.0}]
"""
    specimen = worker.call("introspect", path=write(HEAD + text, "heads.py"), class_name="Head")
    assert specimen["module"] == "heads"
    assert specimen["init_args"] == "16, scale=2.0"
    assert specimen["inputs_from"] == "get_inputs()"
    assert [i["name"] for i in specimen["inputs"]] == ["x", "mask"]
    x, mask = specimen["inputs"]
    assert x["shape"] == [5, 16] and x["dtype"] == "float32" and x["stride"] == [16, 1]
    symbol = x["dynamic"][0]
    assert symbol and x["dynamic"][1] is None, "the width is fixed by the weight"
    assert mask["dynamic"][0] == symbol, "the batch is one symbol"
    assert symbol in specimen["dynamic"]
    assert specimen["outputs"][0]["shape"] == [5, 3]
    assert [p["name"] for p in specimen["parameters"]] == ["linear.weight", "linear.bias", "offset"]
    assert specimen["flops"] == 2 * 5 * 16 * 3
    assert specimen["bytes"] == 4 * (5 * 16 + 5 + 3 * 16 + 3 + 3 + 5 * 3)
    assert specimen["ops"]["aten.linear"] == 1


def test_own_functions_go_before_the_files_and_the_files_before_pyproject(worker, write):
    text = """
class One(nn.Module):
    def forward(self, x):
        return x + 1
class Two(nn.Module):
    def forward(self, x, y):
        return x + y
class Three(nn.Module):
    def forward(self, x, y, z):
        return x + y[0] * z
def get_inputs_Two():
    return [[torch.randn(2)], {"y": torch.randn(2)}]
def get_inputs():
    return [torch.randn(7)]
"""
    path = write(HEAD + text)
    table = {"args": ["float16[4, 3]", ["bfloat16[3]"], 2.5], "kwargs": {}}
    found = {
        name: worker.call("introspect", path=path, class_name=name, inputs=table) for name in ("One", "Two", "Three")
    }
    assert [found[n]["inputs_from"] for n in found] == ["get_inputs()", "get_inputs_Two()", "pyproject.toml"]
    assert [i["name"] for i in found["Two"]["inputs"]] == ["x", "y"]
    assert [(i["name"], i["dtype"], i["shape"]) for i in found["Three"]["inputs"]] == [
        ("x", "float16", [4, 3]),
        ("y[0]", "bfloat16", [3]),
    ]


def test_a_file_in_a_package_is_imported_under_its_dotted_name(worker, write):
    write("from .scale import FACTOR\n", "outer/__init__.py")
    write("", "outer/inner/__init__.py")
    write("FACTOR = 3\n", "outer/scale.py")
    text = """
from ..scale import FACTOR
class Holder:
    class Nested(nn.Module):
        def forward(self, x):
            return x * FACTOR
def get_inputs_Nested():
    return torch.randn(3, 3)
"""
    path = write(HEAD + text, "outer/inner/module.py")
    specimen = worker.call("introspect", path=path, class_name="Holder.Nested")
    assert specimen["module"] == "outer.inner.module"


def test_a_name_that_the_file_only_imports_serves(worker, write):
    text = "from torch.nn import GELU\ndef get_inputs_GELU():\n    return [torch.randn(4)]\n"
    specimen = worker.call("introspect", path=write(HEAD + text), class_name="GELU")
    assert specimen["ops"] == {"aten.gelu": 1}
    assert specimen["module"] == "torch.nn.modules.activation", "where it lives, not where it was imported"


def test_a_class_that_has_another_name_at_home_is_imported_from_the_file(worker, write):
    text = "from torch.nn import GELU as Gate\ndef get_inputs_Gate():\n    return [torch.randn(4)]\n"
    path = write(HEAD + text, "renamed.py")
    answer = worker.call("synthesize", path=path, class_name="Gate")
    assert answer["specimen"]["module"] == "renamed"
    assert "from renamed import Gate" in answer["candidates"][0]["source"]


def test_a_nested_class_is_reached_through_the_one_around_it(worker, write):
    text = """
class Outer:
    class Inner(nn.Module):
        def forward(self, x):
            return x * 2
def get_inputs():
    return [torch.randn(4)]
"""
    path = write(HEAD + text, "nested.py")
    source = worker.call("synthesize", path=path, class_name="Outer.Inner")["candidates"][0]["source"]
    assert "from nested import Outer" in source
    assert "class InnerTriton(Outer.Inner):" in source


def test_long_arguments_are_shown_by_their_type(worker, write):
    text = """
class Held(nn.Module):
    def __init__(self, weights, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.randn(4)]
def get_init_inputs():
    return [list(range(99)), 2.0]
"""
    assert worker.call("introspect", path=write(HEAD + text), class_name="Held")["init_args"] == "list…, 2.0"


def test_every_request_imports_afresh(worker, write):
    text = "class M(nn.Module):\n    def forward(self, x):\n        return x {} 2\ndef get_inputs():\n    return [torch.randn(4)]\n"
    path = write(HEAD + text.format("+"))
    assert worker.call("introspect", path=path, class_name="M")["ops"] == {"aten.add": 1}
    write(HEAD + text.format("*"))
    assert worker.call("introspect", path=path, class_name="M")["ops"] == {"aten.mul": 1}


BIG = """
class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1 << 15, 1 << 15).to(torch.bfloat16)
        self.scale = torch.tensor(2.5)
    def forward(self, x):
        return self.linear(x) * self.scale
def get_inputs():
    return [torch.randn(1 << 16, 1 << 15, dtype=torch.bfloat16).t().contiguous().t()]
"""


def test_a_large_module_takes_no_memory(worker, write):
    answer = worker.call("synthesize", path=write(HEAD + BIG), class_name="Big", seconds=30)
    specimen = answer["specimen"]
    assert specimen["fake"]
    assert specimen["inputs"][0]["stride"] == [1, 1 << 16]
    assert specimen["flops"] == 2 << 46
    assert {p["dtype"] for p in specimen["parameters"]} == {"bfloat16"}
    assert "2.5" in answer["candidates"][0]["source"], "a constant keeps its value"


def test_what_needs_values_gets_them(worker, write):
    text = """
CACHE = {}
class Rated(nn.Module):
    def __init__(self):
        super().__init__()
        CACHE.setdefault("table", torch.linspace(0.25, 0.75, 3))
        self.rates = [r.item() for r in CACHE["table"]]
    def forward(self, x):
        return x * self.rates[2]
def get_inputs():
    import numpy
    return [torch.from_numpy(numpy.ones((4, 3), dtype=numpy.float32))]
"""
    answer = worker.call("synthesize", path=write(HEAD + text), class_name="Rated")
    assert not answer["specimen"]["fake"]
    assert "0.75" in answer["candidates"][0]["source"]


def test_one_element_computed_in_the_constructor_keeps_its_value(worker, write):
    text = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(1) * 3.5
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.randn(4, 3)]
"""
    source = worker.call("synthesize", path=write(HEAD + text), class_name="Scaled")["candidates"][0]["source"]
    assert "3.5" in source


def test_training_mode(worker, write):
    text = """
class Dropped(nn.Module):
    def forward(self, x):
        return x + 1 if self.training else x * 2
def get_inputs():
    return [torch.randn(4, 3)]
"""
    path = write(HEAD + text)
    for training, ops in ((True, {"aten.add": 1}), (False, {"aten.mul": 1})):
        specimen = worker.call("introspect", path=path, class_name="Dropped", training=training)
        assert specimen["training"] is training and specimen["ops"] == ops


def test_what_stays_with_torch_is_counted(worker, write):
    text = """
class Mixed(nn.Module):
    def __init__(self, after):
        super().__init__()
        self.after = after
    def forward(self, x):
        x = x.sort(2).values.sort(3).values
        return x.sort(0).values if self.after == "sort" else torch.exp(x)
def get_inputs():
    return [torch.randn(2, 3, 8, 8)]
def get_init_inputs():
    return [{!r}]
"""
    candidate = worker.call("synthesize", path=write(HEAD + text.replace("{!r}", "'exp'")), class_name="Mixed")[
        "candidates"
    ][0]
    assert candidate["kept"] == {"aten.sort": 2}
    with pytest.raises(WorkerError) as caught:
        worker.call("synthesize", path=write(HEAD + text.replace("{!r}", "'sort'")), class_name="Mixed")
    assert caught.value.data == {
        "op": "aten.sort.default",
        "kept": {"aten.sort": 3},
    }

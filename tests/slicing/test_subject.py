"""What the worker says of a class besides its slice: how forward is called, and the envelope for a model's answer."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.worker.worker_client import WorkerError

MODULE = '''import torch
from torch import nn


class Act(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class Net(nn.Module):
    """Reads settings, a child, a table that is no buffer, and an optional argument."""

    def __init__(self, dim=4, eps=1e-6, bias=None):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.drop = nn.Dropout(0.1)
        self.act = Act()
        self.register_buffer("offset", torch.arange(dim))
        self.table = torch.ones(dim, 2)
        self.eps = eps
        self.bias = bias

    @property
    def broken(self):
        raise RuntimeError("not here")

    def helper(self, x):
        return x + self.eps

    def forward(self, x, pair, scale=2.0, *, flag=True):
        y = self.act(self.norm(x)) @ self.table
        return self.drop(self.helper(y)) * scale + pair[0] + pair[1]["z"] * self.offset[0]


def get_inputs():
    return [[torch.randn(6, 4), (torch.randn(6, 2), {"z": torch.ones(6, 1, dtype=torch.int64)})], {"scale": 3.0}]


def get_init_inputs():
    return [[4], {"eps": 1e-5}]
'''


@pytest.fixture(scope="module")
def subject(worker: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("project") / "net.py"
    path.write_text(MODULE)
    answer = worker.call("slice", path=str(path), class_name="Net", device="auto", inputs=None, seconds=60)
    assert answer["specimen"]["inputs_from"] == "get_inputs()"
    assert any(event == "progress" and data["stage"] == "slice" for event, data, _ in worker.events)
    return dict(answer["subject"])


def test_how_forward_is_declared_and_called(subject: dict[str, Any]) -> None:
    assert (subject["import_from"], subject["base"]) == ("net", "Net")
    assert subject["parameters"] == ["x", "pair", "scale=2.0", "*", "flag=True"]
    assert subject["names"] == ["x", "pair", "scale", "flag=flag"]
    assert subject["tensors"] == ["x", "pair[0]", "pair[1]['z']"]
    assert subject["state"] == ["offset", "norm.weight", "norm.bias"]
    held = {"norm", "drop", "act", "offset", "table", "eps", "bias", "helper", "forward", "training", "register_buffer"}
    assert held <= set(subject["attributes"]) and "broken" not in subject["attributes"]
    assert subject["exact"] == ["x.shape[0] == 6", "pair[0].shape[0] == 6", "pair[1]['z'].shape[0] == 6"]
    source = subject["source"]
    assert '    return [torch.randn(6, 4), (torch.randn(6, 2), {\'z\': torch.ones(6, 1, dtype=torch.int64)}), 3.0]' in source or (
        "torch.randint(0, 2, (6, 1))" in source
    )  # fmt: skip
    assert "return [[4], {'eps': 1e-05}]" in source


@pytest.fixture(scope="module")
def envelope(subject: dict[str, Any]) -> Callable[..., Any]:
    """``envelope(exact=…)`` → a class with ``inside(…)``, as a kernel file would have it on a CPU."""

    def make(exact: bool) -> Any:
        space: dict[str, Any] = {
            "torch": torch,
            "_DEVICE": "cpu",
            "_PLAIN": (torch.Tensor, torch.nn.Parameter),
            "_MOST_ELEMENTS": 2**31 - 2**16,
        }
        exec(MODULE, space)
        conditions = [*subject["conditions"], *(subject["exact"] if exact else [])]
        declared = ", ".join(["self", *subject["parameters"]])
        test = textwrap.indent("\nand ".join(conditions), "            ")
        exec(f"class Inside(Net):\n    def inside({declared}):\n        return bool(\n{test}\n        )\n", space)
        return space["Inside"]

    return make


def inputs(n: int = 6) -> tuple[Any, ...]:
    return torch.randn(n, 4), (torch.randn(n, 2), {"z": torch.ones(n, 1, dtype=torch.int64)}), 3.0


def test_the_example_is_inside_and_other_sizes_only_without_the_exact_conditions(envelope: Callable[..., Any]) -> None:
    free, exact = envelope(False)(4, 1e-5).eval(), envelope(True)(4, 1e-5).eval()
    with torch.no_grad():
        assert free.inside(*inputs()) and exact.inside(*inputs())
        assert free.inside(*inputs(17)) and not exact.inside(*inputs(17))
        assert not free.inside(*inputs(0))
    assert not free.inside(*inputs()), "gradients of the parameters are asked for"
    with torch.no_grad(), torch.autocast("cpu"):
        assert not free.inside(*inputs())


@torch.no_grad()
def test_other_arguments_are_outside(envelope: Callable[..., Any]) -> None:
    net = envelope(False)(4, 1e-5).eval()
    x, (a, z), scale = inputs()
    assert net.inside(x, (a, z), scale)
    others: list[tuple[Any, ...]] = [
        (x.double(), (a, z), scale),
        (x.t().contiguous().t(), (a, z), scale),
        (torch.randn(6, 8)[:, ::2], (a, z), scale),
        (x[None], (a, z), scale),
        (x[:5], (a, z), scale),
        (torch.complex(x, x).conj().imag, (a, z), scale),
        (x, [a, z], scale),
        (x, (a, {"y": z["z"]}), scale),
        (x, (a, {"z": z["z"].int()}), scale),
        (x, (a, z), 2.0),
        (x, (a, z), 3),
        (x, (a, z), torch.tensor(3.0)),
        (nn.Buffer(x), (a, z), scale),
    ]
    for arguments in others[:-1]:
        assert not net.inside(*arguments), arguments
    assert not net.inside(x, (a, z), scale, flag=False)


def test_another_module_is_outside(envelope: Callable[..., Any]) -> None:
    kind = envelope(False)
    changes: list[Callable[[Any], Any]] = [
        lambda m: m.train(),
        lambda m: setattr(m, "eps", 1e-6),
        lambda m: setattr(m, "bias", 1),
        lambda m: setattr(m, "table", torch.ones(4, 2).half()),
        lambda m: setattr(m, "act", nn.ReLU()),
        lambda m: setattr(m.norm, "eps", 1e-3),
        lambda m: m.act.register_forward_hook(lambda *_: None),
        lambda m: setattr(m, "offset", m.offset.int()),
        lambda m: setattr(m.norm, "weight", None),
        lambda m: setattr(m.norm, "weight", nn.Parameter(torch.ones(8)[::2])),
        lambda m: setattr(m.norm, "bias", nn.Parameter(torch.ones(4).bfloat16())),
        lambda m: m.add_module("more", nn.ReLU()),
    ]
    with torch.no_grad():
        for i, change in enumerate(changes):
            module = kind(4, 1e-5).eval()
            assert module.inside(*inputs())
            change(module)
            try:
                assert not module.inside(*inputs()), i
            except AttributeError:  # in a kernel file: outside
                assert i in (8,)


def test_without_an_export_every_size_is_pinned(worker: Any, tmp_path: Any) -> None:
    path = tmp_path / "branch.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else x * 2\n"
        "def get_inputs():\n    return [torch.randn(3, 5).t()]\n"
    )
    answer = worker.call("slice", path=str(path), class_name="Net")["subject"]
    assert answer["exact"] == []
    assert "x.shape == (5, 3)" in answer["conditions"] and "x.stride() == (1, 5)" in answer["conditions"]
    assert "return [torch.randn(3, 5).t()]" in answer["source"]


def test_an_argument_that_no_condition_can_be_written_for(worker: Any, tmp_path: Any) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x, act):\n        return act(x)\n"
        "def get_inputs():\n    return [torch.randn(3), torch.relu]\n"
    )
    with pytest.raises(WorkerError) as raised:
        worker.call("slice", path=str(path), class_name="Net")
    assert raised.value.code == "NotWritable" and "act" in raised.value.message


def test_validating_after_slicing_needs_no_second_look(worker: Any, subject: dict[str, Any], tmp_path: Any) -> None:
    path = tmp_path / "twice.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
        "def get_inputs():\n    return [torch.randn(8)]\n"
    )
    worker.call("slice", path=str(path), class_name="Net", inputs=None)
    source = "import torch\nfrom twice import Net\nclass NetTriton(Net):\n    pass\n"
    worker.call(
        "validate", path=str(path), class_name="Net", inputs=None, source=source, device="interpreter", measure="none"
    )
    assert not any(data.get("stage") == "introspect" for _, data, _ in worker.events)

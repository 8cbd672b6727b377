"""Stubs of example inputs: pasted into the file, they construct the class and call it."""

from __future__ import annotations

import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.analysis import Source
from kernel_lsp.analysis.example_stub import stub

HEAD = """
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Optional

import torch
from torch import nn

from settings import Shared


class Kind(Enum):
    ONE = 1


@dataclass
class Rope:
    theta: float
    scaling: str = "none"


@dataclass
class Config:
    hidden_size: int
    num_heads: int
    rope: Rope
    eps: float = 1e-6


class Given:
    def __init__(self, size: int):
        self.size = size
"""
SETTINGS = "from dataclasses import dataclass\n\n\n@dataclass\nclass Shared:\n    width: int\n    eps: float\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "settings.py").write_text(SETTINGS)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("settings", "blocks"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path / "blocks.py"


def run(file: Path, text: str, name: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """The module that the stub of ``name`` constructs, and what forward is called with."""
    pytest.importorskip("torch")
    found = stub(Source(text), file, name)
    module = types.ModuleType("blocks")
    namespace = vars(module)
    sys.modules["blocks"] = module  # dataclasses looks there
    exec(compile(f"{text}\n\n{found.functions}", str(file), "exec"), namespace)
    short = name.replace(".", "_")
    init = namespace.get(f"get_init_inputs_{short}", list)()
    kind = eval(name, namespace)
    given = namespace[f"get_inputs_{short}"]()
    args, kwargs = given if len(given) == 2 and isinstance(given[1], dict) else (given, {})
    return kind(*init), args, kwargs


def test_a_dataclass_is_filled_in_with_its_required_fields(file: Path) -> None:
    text = HEAD + (
        "class Block(nn.Module):\n"
        "    def __init__(self, config: Config, shared: Shared, given: 'Given', kind: Kind, mode: Literal['fast', 'slow'],\n"
        "                 rest: Optional[Config] = None):\n"
        "        super().__init__()\n"
        "        self.made = config, shared, given, kind, mode\n"
        "        self.fc = nn.Linear(config.hidden_size, config.hidden_size)\n\n"
        "    def forward(self, x: torch.Tensor, *, scale: float, flag: bool = False):\n"
        "        return self.fc(x) * scale\n"
    )
    module, args, kwargs = run(file, text, "Block")
    config, shared, given, kind, mode = module.made
    assert (config.hidden_size, config.num_heads, config.rope.theta) == (64, 8, 1.0)
    assert (shared.width, shared.eps, given.size, kind.name, mode) == (64, 1e-5, 64, "ONE", "fast")
    assert list(kwargs) == ["scale"] and module(*args, **kwargs).shape == (8, 64)


def test_a_configuration_without_annotation_has_the_attributes_that_are_read(file: Path) -> None:
    """Of the class, of the modules that it hands the configuration on to, and of a base's constructor."""
    text = HEAD + (
        "class Inner(nn.Module):\n"
        "    def __init__(self, cfg):\n"
        "        super().__init__()\n"
        "        self.up = nn.Linear(cfg.hidden_size, cfg.intermediate_size, bias=cfg.mlp_bias)\n\n\n"
        "class Base(nn.Module):\n"
        "    def __init__(self, config, layer_idx: int):\n"
        "        super().__init__()\n"
        "        self.config = config\n"
        "        self.norm = nn.LayerNorm(config.hidden_size, eps=config.rms_norm_eps)\n"
        "        self.mlp = Inner(config)\n\n\n"
        "class Layer(Base):\n"
        "    def forward(self, hidden_states):\n"
        "        return self.mlp.up(self.norm(hidden_states)) / self.config.num_attention_heads\n"
    )
    module, args, kwargs = run(file, text, "Layer")
    assert (module.config.hidden_size, module.config.rms_norm_eps, module.config.mlp_bias) == (64, 1e-5, True)
    assert module(*args, **kwargs).shape == (8, 128)


def test_a_configuration_of_a_library_is_an_object_and_never_a_number(file: Path) -> None:
    text = (
        "from torch import nn\nfrom transformers import LlamaConfig\n\n\nclass Layer(nn.Module):\n"
        "    def __init__(self, config: LlamaConfig, other: 'Unknown'): ...\n"
    )
    found = stub(Source(text), file, "Layer")
    assert "        LlamaConfig(),  # config: put in its values" in found.functions
    assert "        None,  # other: put in a Unknown" in found.functions
    assert found.table == ""


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("input_ids", '"int64[8, 128] < 100"'),
        ("x, attention_mask", '"float32[8, 128]", "bool[8, 128]"'),
        ("x: 'torch.LongTensor'", '"int64[8, 128] < 100"'),
        ("x, sizes: tuple[int, int], names: list[str]", '"float32[8, 128]", [64, 64], [""]'),
    ],
)
def test_the_table_says_the_same(file: Path, forward: str, expected: str) -> None:
    text = f"import torch\n\n\nclass Outer:\n    class Net(torch.nn.Module):\n        def forward(self, {forward}):\n            return x\n"
    found = stub(Source(text), file, "Outer.Net", shown="model/blocks.py")
    table = tomllib.loads(found.table)["tool"]["kernel-lsp"]["inputs"]["model/blocks.py::Outer.Net"]
    assert table == tomllib.loads(f"args = [{expected}]")
    namespace: dict[str, Any] = {}
    pytest.importorskip("torch")
    exec(f"import torch\n{found.functions}", namespace)
    assert len(namespace["get_inputs_Outer_Net"]()) == len(table["args"])


def test_a_class_that_does_not_parse_gets_a_stub_without_parameters(file: Path) -> None:
    found = stub(Source("class Net(nn.Module):\n    def forward(self, x:\n"), file, "Net")
    compile(found.functions, "stub", "exec")
    assert found.table == ""


@pytest.mark.parametrize(
    ("init", "forward", "shape"),
    [
        ("", "b, t, d = x.shape\nreturn x.reshape(b * t, d)", (2, 16, 128)),
        ("self.fc = nn.Linear(64, 8)", "b, t, d = x.size()\nreturn self.fc(x)", (2, 16, 64)),
        ("", "b, c, h, w = x.shape\nreturn x.reshape(b, c, h * w)", (2, 64, 32, 32)),
        ("self.conv = nn.Conv2d(3, 8, 3)", "return self.conv(x)", (2, 3, 32, 32)),
        ("self.conv = nn.Conv1d(in_channels=5, out_channels=8, kernel_size=3)", "return self.conv(x)", (2, 5, 128)),
        ("self.conv = nn.Conv3d(width, 8, 3)", "x = self.conv(x)\nreturn x.mean(2)", (2, 12, 8, 16, 16)),
        ("self.body = nn.Sequential(nn.BatchNorm2d(7), nn.ReLU())", "return self.body(x)", (2, 7, 32, 32)),
        ("self.norm = nn.BatchNorm1d(7)", "return self.norm(x)", (8, 7)),
        ("self.fc = nn.Linear(24, 8)", "return self.fc(x)", (8, 24)),
        ("self.rnn = nn.LSTM(6, 8)", "return self.rnn(x)[0]", (2, 16, 6)),
        ("", "return x.mean((2, 3))", (2, 64, 32, 32)),
        ("", "return torch.softmax(x, dim=-3)", (2, 16, 128)),
        ("", "return x[:, :, 0]", (2, 16, 128)),
        ("", "return x.permute(0, 2, 3, 1)", (2, 64, 32, 32)),
        ("", "return torch.nn.functional.max_pool2d(x, 2)", (2, 64, 32, 32)),
        ("", "x = x.flatten(1)\nb, t, d, e = x.shape[0], 1, 1, 1\nreturn x", (8, 128)),
    ],
)
def test_the_shape_is_what_the_class_says(file: Path, init: str, forward: str, shape: tuple[int, ...]) -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Block(nn.Module):\n"
    text += f"    def __init__(self, width=12):\n        super().__init__()\n        {init or 'pass'}\n\n"
    text += "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in forward.split("\n"))
    module, args, kwargs = run(file, text, "Block")
    assert args[0].shape == shape
    module(*args, **kwargs)


def test_an_embedding_is_given_places_in_its_table(file: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Block(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.table = nn.Embedding(10, 4)\n\n"
        "    def forward(self, x):\n        return self.table(x)\n"
    )
    module, args, kwargs = run(file, text, "Block")
    assert args[0].dtype.is_floating_point is False and int(args[0].max()) < 10
    module(*args, **kwargs)

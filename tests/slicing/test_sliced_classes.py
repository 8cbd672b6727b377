"""Classes written in every way that Python has: nested, made, decorated, recursive, configured, registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.worker.worker_client import WorkerError

HEAD = "import torch\nfrom torch import nn\n"
INPUTS = "\n\ndef get_inputs():\n    return [torch.randn(3, 4)]\n"


def test_a_nested_class_with_its_siblings(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Outer.Inner.Core",
        m=HEAD
        + "BIAS = 2\nclass Outer:\n    SCALE = 3\n    def decorate(cls):\n        cls.marked = True\n        return cls\n"
        + "    class Base(nn.Module):\n        def act(self, x):\n            return x.relu() + Outer.SCALE\n"
        + "    class Inner:\n        class Core(nn.Module):\n            '''Several\n            lines.\n            '''\n"
        + "            def __init__(self, depth=2):\n                super(Outer.Inner.Core, self).__init__()\n"
        + "                self.base = Outer.Base()\n                # deeper\n                self.inner = Outer.Inner.Core(depth - 1) if depth else None\n"
        + "            def forward(self, x):\n                if self.inner is not None:\n                    x = self.inner(x)\n"
        + "                return self.base.act(x) * BIAS\n"
        + INPUTS,
    )
    assert source.count("class Model(nn.Module):\n    '''Several") == 1
    assert "super(Model, self)" in source and "\n        # deeper\n        self.inner = Model(" in source
    source = sliced(
        "Outer.Inner",
        n=HEAD
        + "class Outer:\n    def mark(cls):\n        cls.marked = 5\n        return cls\n    class Base(nn.Module):\n        pass\n"
        + "    @mark\n    class Inner(Base):\n        def forward(self, x):\n            return x * self.marked\n"
        + INPUTS,
    )
    assert "class Model(Base):" in source or "class Model(Outer" in source


def test_classes_that_are_made(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Wide",
        m=HEAD
        + "def make(width, act=lambda x: x.tanh()):\n    class Made(nn.Module):\n        def __init__(self):\n            super().__init__()\n"
        + "            self.fc = nn.Linear(4, width)\n        def forward(self, x):\n            return act(self.fc(x))\n    return Made\n"
        + "Narrow, Wide = make(2), make(9)\nDynamic = type('Dynamic', (Wide,), {'forward': lambda self, x: x * 2})\n"
        + INPUTS,
    )
    assert "Narrow, Model = make(2), make(9)" in source and "Dynamic" not in source


def test_configurations_enums_and_constructor_arguments(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        m=HEAD
        + "from dataclasses import dataclass, field\nfrom enum import Enum\nfrom typing import NamedTuple\n"
        + "from consts import Act\n"
        + "class Sizes(NamedTuple):\n    inner: int = 8\n"
        + "@dataclass\nclass Config:\n    dim: int = 4\n    act: Act = Act.RELU\n    sizes: Sizes = field(default_factory=Sizes)\n"
        + "ACTS = {Act.RELU: torch.relu}\nACTS[Act.TANH] = torch.tanh\nLAYERS = []\nLAYERS.append(nn.Identity)\n"
        + "@dataclass\nclass Unused(Config):\n    more: int = 1\n"
        + "def small(**others):\n    return Config(dim=4, **others)\n"
        + "class Net(nn.Module):\n    def __init__(self, config: Config, *, gain=1.0):\n        super().__init__()\n        self.config = config\n        self.gain = gain\n"
        + "        self.fc = nn.Linear(config.dim, config.sizes.inner)\n        self.layers = nn.ModuleList(kind() for kind in LAYERS)\n"
        + "    def forward(self, x):\n        return ACTS[self.config.act](self.layers[0](self.fc(x))) * self.gain\n"
        + "def get_init_inputs():\n    return [[small(act=Act.TANH)], {'gain': 2.0}]\n"
        + INPUTS,
        consts="from enum import Enum\nclass Act(Enum):\n    RELU = 'relu'\n    TANH = 'tanh'\n",
    )
    assert "def get_init_inputs():\n    return [[small(act=Act.TANH)], {'gain': 2.0}]" in source
    assert "Unused" not in source


@pytest.mark.slow
def test_the_forms_of_constructor_arguments(sliced: Callable[..., str]) -> None:
    net = "class Net(nn.Module):\n    def __init__(self, *sizes, **more):\n        super().__init__()\n        self.sizes, self.more = sizes, more\n    def forward(self, x):\n        return x * len(self.sizes) + len(self.more)\n"
    given = {
        "return [4, (1,), None, float('inf'), torch.float16]": "return [4, (1,), None, float('inf'), torch.float16]".replace("'", '"'),
        "return {'a': nn.ReLU(), 'b': 3}": "return [[], keep()]",
        "return nn.ReLU()": "return [keep()]",
        "return [[1, 2], {}]": "return [1, 2]",
        "return [[[1], {'a': 2}], {}]": "return [[[1], {'a': 2}], {}]",
        "return [[3], {'eps': 1e-5}]": "return [[3], {'eps': 1e-05}]",
        "return [nn.ReLU]": "return [nn.ReLU]",
    }  # fmt: skip
    for i, (wrote, expected) in enumerate(given.items()):
        function = f"def keep():\n    {wrote}\ndef get_init_inputs():\n    return keep()\n"
        if "ReLU" not in wrote or expected == wrote:
            function = f"def get_init_inputs():\n    {wrote}\n"
        source = sliced("Net", **{f"m{i}": HEAD + net + function + INPUTS})
        if "keep" not in expected:
            assert expected in source, source


def test_recursion_registries_and_decorators(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Tree",
        m=HEAD
        + "import functools\nfrom registry import REGISTRY, register\n"
        + "def counted(f):\n    @functools.wraps(f)\n    def inner(self, *args, **kwargs):\n        return f(self, *args, **kwargs) + STEP\n    return inner\n"
        + "STEP = 1\n@register\nclass Leaf(nn.Module):\n    def forward(self, x):\n        return x.exp()\n"
        + "@register\nclass Stone(nn.Module):\n    pass\n"
        + "@register\nclass Tree(nn.Module):\n    def __init__(self, depth=2):\n        super().__init__()\n"
        + "        self.below = Tree(depth=depth - 1) if depth else REGISTRY['Leaf']()\n"
        + "    @counted\n    @torch.no_grad()\n    def forward(self, x, scale=STEP + 1):\n        return self.below(x) * scale\n"
        + INPUTS,
        registry="REGISTRY = {}\ndef register(cls):\n    REGISTRY[cls.__name__] = cls\n    return cls\n",
    )
    assert "self.below = Model(depth=depth - 1)" in source


def test_a_name_that_depends_on_the_class_name_keeps_it(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Hidden",
        m=HEAD
        + "class Hidden(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.__weight = nn.Parameter(torch.ones(4))\n"
        + "    def forward(self, x):\n        return x * self.__weight\n"
        + INPUTS,
    )
    assert "class Hidden(nn.Module):" in source and "\nModel = Hidden\n" in source
    source = sliced(
        "Net",
        n=HEAD
        + "class Net(nn.Module):\n    def __init__(self, depth=1):\n        super().__init__()\n        self.inner = self.make(nn.Identity, depth)\n"
        + "    def make(self, Model, depth):\n        return Net(depth - 1) if depth else Model()\n    def forward(self, x):\n        return self.inner(x) + 1\n"
        + INPUTS,
    )
    assert "\nModel = Net\n" in source, "a local variable has the name Model"


def test_what_a_function_changes_and_what_only_a_run_knows(sliced: Callable[..., str], tmp_path: Any) -> None:
    (tmp_path / "numbers.txt").write_text("[1, 2, 3]")
    source = sliced(
        "Net",
        m=HEAD
        + "import json, os, logging\nlogger = logging.getLogger(__name__)\n_calls, other = 0, 1\n"
        + "with open(os.path.join(os.path.dirname(__file__), 'numbers.txt')) as file:\n    NUMBERS = json.load(file)\n"
        + "for _name in ('LEFT', 'RIGHT'):\n    globals()[_name] = len(_name)\n"
        + "def count():\n    global _calls, other\n    _calls += 1\n    return _calls\n"
        + "class Net(nn.Module):\n    def forward(self, x):\n        logger.debug('called')\n        count()\n        return x * sum(NUMBERS) + LEFT * RIGHT\n"
        + INPUTS,
    )
    assert "NUMBERS = [1, 2, 3]" in source and "LEFT = 4" in source and "numbers.txt" not in source
    assert "global _calls, other\n" in source


def test_formatting_is_kept(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Größe",
        m="# -*- coding: utf-8 -*-\nimport torch ; from torch import nn\nü = 1 ; ä = 2; π = 3.0\n"
        "def f(x): return x*ä  # über\n\n"
        "#: above\n@(lambda c: c)\nclass \\\n  Größe ( nn.Module ) :\n"
        '\tdef forward(self, x, y = ü):\n\t\tt = f\'{Größe.__name__}: {π:.{ü}f} {f(x)!r:>{ä}}\' f"""{f}\n{Größe}"""\n'
        "\t\treturn f( x )   +  y * len(t[:1]) # ende\n" + INPUTS,
    )
    assert "#: above\n@(lambda c: c)\nclass \\\n  Model ( nn.Module ) :" in source
    assert "\t\treturn f( x )   +  y * len(t[:1]) # ende" in source
    assert "def f(x): return x*ä  # über" in source
    assert "{Model}" in source and "Größe" not in source


@pytest.mark.slow
def test_functions_whose_source_is_read_and_operators_registered_once(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        m=HEAD
        + "import triton, triton.language as tl\nfrom typing import overload\nfrom functools import singledispatch\n"
        + "@torch.jit.script\ndef scripted(x):\n    return x * 2\n"
        + "@triton.jit\ndef kernel(x_ptr, BLOCK: tl.constexpr):\n    tl.store(x_ptr, 0)\n"
        + "@torch.library.custom_op('slice_test::twice', mutates_args=())\ndef twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
        + "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n"
        + "@singledispatch\ndef kind(value):\n    return 1\n@kind.register\ndef _int(value: int):\n    return 2\n"
        + "def launch(x):\n    kernel[(1,)](x, BLOCK=4)\n    return x\n"
        + "class Net(nn.Module):\n    def forward(self, x):\n        return twice(scripted(x)) * kind(3) if x.device.type == 'cpu' else launch(x)\n"
        + INPUTS,
    )
    assert "@triton.jit\ndef kernel(" in source and "@twice.register_fake" in source and "def _int(" in source
    assert "overload" not in source


def test_a_module_used_as_a_value_is_imported(worker: Any, tmp_path: Any) -> None:
    (tmp_path / "ops.py").write_text("def double(x):\n    return x * 2\n")
    path = tmp_path / "m.py"
    net = "class Net(nn.Module):\n    def forward(self, x):\n        return getattr(ops, 'dou' + 'ble')(x)\n"
    path.write_text(HEAD + "import ops\n" + net + INPUTS)
    source = worker.call("slice", path=str(path), class_name="Net")["subject"]["source"]
    assert "import ops\n" in source and "getattr(ops, " in source


def test_a_class_that_returns_a_dataclass(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        m=HEAD
        + "from dataclasses import dataclass\n@dataclass\nclass Output:\n    value: torch.Tensor\n    kind: str = 'doubled'\n"
        + "class Net(nn.Module):\n    def forward(self, x):\n        return Output(x * 2)\n"
        + INPUTS,
    )
    assert "class Output:" in source and "return Output(x * 2)" in source


def test_a_default_dtype_set_at_the_top_takes_the_whole_file(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        m=HEAD
        + "torch.set_default_dtype(torch.float64)\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
        + "    def forward(self, x):\n        return self.fc(x)\nclass Other(nn.Module):\n    pass\n"
        + INPUTS,
    )
    assert "set_default_dtype" in source and "class Model(nn.Module):" in source


def test_what_cannot_be_sliced_says_why(worker: Any, tmp_path: Any) -> None:
    path = tmp_path / "m.py"
    path.write_text(
        HEAD
        + "import sys\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        sys.modules['m'].Net\n"
        + "    def forward(self, x):\n        return x\n"
        + INPUTS
    )
    with pytest.raises(WorkerError) as raised:
        worker.call("slice", path=str(path), class_name="Net")
    assert raised.value.code == "NotSliceable" and raised.value.where == {"path": str(path), "line": 4}
    assert "KeyError: 'm' at line" in raised.value.message
    assert worker.call("introspect", path=str(path), class_name="Net")["class_name"] == "Net", "the worker goes on"

"""Classes that use what is defined elsewhere: other files, packages, aliases, and names that collide there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

HEAD = "import torch\nfrom torch import nn\n"
INPUTS = "\n\ndef get_inputs():\n    return [torch.randn(3, 4)]\n"


def test_helpers_bases_submodules_and_constants_come_along_and_nothing_else(sliced: Callable[..., str]) -> None:
    main = (
        '"""A module of the project."""\n' + HEAD + "import torch.nn.functional as F\n"
        "import math, json\n"
        "from lib.blocks import *\n"
        "from lib.norms import RMS as Norm\n"
        "from lib import scale\n"
        "print('hello from the module')\n"
        "UNUSED = json.dumps({})\n"
        "WIDTH = 4\n"
        "\n"
        "class Unrelated(nn.Module):\n"
        "    pass\n"
        "\n"
        "# What it does\n"
        "class Block(Base):  # derived\n"
        "    def __init__(self, dim=WIDTH, *, bias: bool = True):\n"
        "        super(Block, self).__init__(dim)\n"
        "        self.norm = Norm(dim)\n"
        "        self.fc = nn.Linear(dim, dim, bias=bias)\n"
        "        self.apply(initialise)\n"
        "\n"
        "    def forward(self, x):\n"
        "        # a comment inside\n"
        "        y = F.gelu(self.fc(self.norm(x)))  # behind it\n"
        "        return scale.twice(y) / math.sqrt(DEPTH)\n"
        "\n"
        "if __name__ == '__main__':\n"
        "    Block()(torch.randn(3, 4))\n" + INPUTS
    )
    source = sliced(
        "Block",
        main=main,
        lib___init="from .blocks import Base\n",
        lib__blocks=HEAD
        + "from .scale import FACTOR\n__all__ = ['Base', 'initialise', 'DEPTH']\nDEPTH = 2 * FACTOR\nclass Base(nn.Module):\n"
        "    def __init__(self, dim):\n        super().__init__()\n        self.dim = dim\n\n"
        "def initialise(m):\n    if isinstance(m, Base):\n        m.seen = DEPTH\n",
        lib__norms=HEAD
        + "EPS = 1e-6\n\ndef _mean(x):\n    return x.pow(2).mean(-1, keepdim=True)\n\n\nclass RMS(nn.Module):\n"
        "    def __init__(self, dim, eps=EPS):\n        super().__init__()\n        self.weight = nn.Parameter(torch.ones(dim))\n"
        "        self.eps = eps\n    def forward(self, x):\n        return x * torch.rsqrt(_mean(x) + self.eps) * self.weight\n",
        lib__scale="FACTOR = 3\n\ndef twice(x):\n    return x * 2\n\ndef thrice(x):\n    return x * 3\n",
    )
    assert "class Model(Base):  # derived" in source and "super(Model, self)" in source
    assert "# What it does\nclass Model" in source and "# a comment inside" in source and "# behind it" in source
    for absent in ("Unrelated", "UNUSED", "json", "hello", "thrice", "__main__", "lib", "Norm(nn", "A module of"):
        assert absent not in source, absent
    assert "import math\n" in source and "import torch.nn.functional as F" in source


def test_two_of_one_name_get_two_names(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Pair",
        main=HEAD
        + "import a, b as other\nfrom a import Model as First\n"
        + "class Model(nn.Module):\n    def forward(self, x):\n        return x + 100\n"
        + "class Pair(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.first, self.second, self.third = First(), other.Model(), Model()\n"
        + "    def forward(self, x):\n        helper = 2\n        round = other.round\n"
        + "        return self.third(self.first(x) * a.helper(x) - self.second(x) * other.helper(x)) * helper + round(1.6)\n"
        + INPUTS,
        a=HEAD
        + "def helper(x):\n    return x.sum() + round(1.6)\nclass Model(nn.Module):\n    def forward(self, x):\n        return helper(x)\n",
        b=HEAD
        + "def round(x):\n    return 7\ndef helper(x):\n    return x.exp() * round(0)\n"
        + "class Model(nn.Module):\n    def forward(self, x):\n        return helper(x)\n",
    )
    assert source.count("class Model(") == 1


def test_a_submodule_of_a_package_by_its_dotted_name(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        pkg__models__net="import torch\nimport torch.nn as nn\nimport pkg.layers.act\nimport pkg.layers as L\nfrom .. import consts\n"
        "from ..layers import norm as norms\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = norms.Norm(consts.DIM)\n"
        "    def forward(self, x):\n        from .late import shift\n        import pkg.models.late as late, math\n"
        "        return pkg.layers.act.act(self.norm(x)) + L.act.SLOPE + shift(x) * late.BY + math.pi\n" + INPUTS,
        pkg___init="",
        pkg__models___init="",
        pkg__layers___init="from .norm import Norm\n",
        pkg__layers__norm="from torch import nn\nclass Norm(nn.LayerNorm):\n    pass\n",
        pkg__layers__act="import torch\nSLOPE = 0.1\n\n\ndef act(x, slope=SLOPE):\n    return torch.nn.functional.leaky_relu(x, slope)\n",
        pkg__models__late="from .net import Net\nBY = 4\ndef shift(x):\n    return isinstance(x, Net) + 1\n",
        pkg__consts="DIM = 4\n",
    )
    assert "pkg" not in source and "from ." not in source
    assert "isinstance(x, Model)" in source
    assert source.count("import torch.nn as nn") + source.count("from torch import nn") == 1


def test_what_is_imported_stays_as_it_was_written(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        net="import torch, torch.utils.checkpoint\nimport torch as t, functools as ft\nfrom torch.nn import (Module as M,\n    functional as Fn)\nfrom typing import *\n"
        "from a import gelu\n"
        "class Net(M):\n    size: Optional[int] = None\n    def forward(self, x: 'torch.Tensor') -> Union[t.Tensor, None]:\n"
        "        g = ft.partial(gelu, approximate='tanh')\n"
        "        return torch.utils.checkpoint.checkpoint(g, Fn.relu(x), use_reentrant=False)\n" + INPUTS,
        a="from torch.nn.functional import gelu\n",
    )
    for line in (
        "import torch as t",
        "import torch.utils.checkpoint",
        "import functools as ft",
        "from torch.nn import Module as M, functional as Fn",
        "from torch.nn.functional import gelu",
        "from typing import Optional, Union",
    ):
        assert f"{line}\n" in source, source


def test_the_branch_that_ran(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        net=HEAD
        + "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nowhere import Config\n"
        + "try:\n    import no_such_package\n    FAST = True\nexcept ImportError:\n    no_such_package = None\n    FAST = False\n"
        + "try:\n    from no_such_package import Norm\nexcept ImportError:\n    # the slow one\n    class Norm(nn.Module):\n"
        + '        """A\n        docstring\n        """\n        def forward(self, x):\n            return (\n    x / x.norm()\n            )\n'
        + "if torch.__version__ > '9999':\n    from plain import f as act\nelse:\n    from plain import g as act\n"
        + "if FAST:\n    WIDTH = 3\nelse:\n    WIDTH = [4][0]\n"
        + "class Net(nn.Module):\n    def __init__(self, config: 'Config' = None):\n        super().__init__()\n        self.norm = Norm()\n"
        + "    def forward(self, x):\n        if FAST and no_such_package:\n            return no_such_package.f(x)\n        return act(self.norm(x)) * WIDTH\n"
        + INPUTS,
        plain="def f(x):\n    return x\ndef g(x):\n    return -x\n",
    )
    assert "# the slow one\nclass Norm(nn.Module):" in source and "\nx / x.norm()\n" in source
    assert "try" not in source and "nowhere" not in source and "def f(" not in source
    assert "no_such_package = None" in source and "FAST = False" in source


def test_a_class_that_the_file_only_imports(sliced: Callable[..., str], tmp_path: Path) -> None:
    source = sliced(
        "Mine",
        main="import torch\nfrom pkg import Norm as Mine\n" + INPUTS,
        pkg___init="from .inner import Norm\n",
        pkg__inner=HEAD + "class Norm(nn.Module):\n    def forward(self, x):\n        return x / x.norm()\n",
    )
    assert "class Model(nn.Module):" in source


def test_out_of_an_installed_package(worker: Any, assert_slice_is_equal: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import torch\nfrom torch.nn import TransformerEncoderLayer as Layer, GELU\nimport torch.nn.modules.batchnorm as b\n"
                    "def get_inputs():\n    return [torch.randn(2, 5, 8)]\n"
                    "def get_init_inputs_Layer():\n    return [[8, 2], {'dim_feedforward': 16}]\ndef get_init_inputs():\n    return []\n"
                    "def get_init_inputs_BatchNorm1d():\n    return [5]\n")  # fmt: skip
    for name in ("Layer", "GELU", "b.BatchNorm1d"):
        source = worker.call("slice", path=str(path), class_name=name)["subject"]["source"]
        assert "class Model(" in source and source.count("\n") < 600
        assert_slice_is_equal(str(path), name, source)
    assert "class _BatchNorm(" in source and "class _NormBase(" in source, "the bases come along"
    assert "class Module" not in source
    assert "Args:" not in source, "a manual is cut to its first line"


def test_circular_imports_and_postponed_annotations(sliced: Callable[..., str]) -> None:
    source = sliced(
        "Net",
        pkg__net="from __future__ import annotations\nimport torch\nfrom torch import nn\nfrom . import parts\n"
        "def scale(x):\n    return x * parts.FACTOR\n"
        "class Net(parts.Base):\n    def __init__(self, config: Config = None):\n        super().__init__()\n"
        "    def forward(self, x: torch.Tensor) -> Net:\n        return self.run(x) + self.last\n"
        "class Config:\n    net: Net\nNet.last = len('abc')\n" + INPUTS,
        pkg___init="",
        pkg__parts=HEAD
        + "from pkg import net\nFACTOR = 3\nclass Base(nn.Module):\n    def run(self, x):\n        return net.scale(x)\n",
    )
    assert source.startswith("from __future__ import annotations\n")
    assert source.index("class Base") < source.index("class Model(Base)") < source.index("Model.last = len")


def test_odd_files(sliced: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(
        "# coding: latin-1\r\nNAME = 'ä'\r\ndef f(x):\r\n\treturn x + len('ä')  # ö\r\n".encode("latin-1")
    )
    (tmp_path / "marked.py").write_bytes("\ufeffdef g(x):\n    return x * 2\n\x0c\ndef h(x):\n    return x\n".encode())
    source = sliced(
        "Net",
        m=HEAD
        + "from latin import NAME, f\nfrom marked import g\nx = eps = 3\nfor _i in range(2):\n    x += _i\ndel _i\n"
        + "def twice(x):\n    return x\ndef twice(x):  # the second\n    return x * 2\n"
        + "if eps > 2:\n    def pick(x):\n        return x - 1\nelse:\n    def pick(x):\n        return x + 1\n"
        + "class Net(nn.Module):\n    eps = eps\n    def forward(self, y):\n        match y.dim():\n            case 2 as dims:\n                y = y + dims\n"
        + "        return pick(twice(g(f(y)))) * x * self.eps if (n := NAME) else n\n"
        + INPUTS,
    )
    assert "# ö" in source and "# the second" in source and source.count("def twice") == source.count("def pick") == 1


def test_an_import_at_run_time_is_left_where_nothing_else_helps(worker: Any, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("def f(x):\n    return x * 3\n")
    path = tmp_path / "m.py"
    net = "class Net(nn.Module):\n    def forward(self, x):\n        return importlib.import_module('late').f(x)\n"
    path.write_text(HEAD + "import importlib\n" + net + INPUTS)
    answer = worker.call("slice", path=str(path), class_name="Net")
    assert "importlib.import_module('late')" in answer["subject"]["source"]
    assert "def f(" not in answer["subject"]["source"]

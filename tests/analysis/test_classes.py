"""Which classes count as modules, and what is found of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.analysis import ModuleClass, imported_with_inputs, module_classes

PATH = Path("/project/net.py")


def classes(source: str, files: dict[str, str] | None = None, path: Path = PATH) -> list[ModuleClass]:
    texts = {Path("/project") / name: text for name, text in (files or {}).items()}
    return module_classes(source, path, texts.get)


def names(source: str, files: dict[str, str] | None = None, path: Path = PATH) -> list[str]:
    return [c.name for c in classes(source, files, path)]


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn", "torch.nn.Module"),
        ("import torch.nn as nn", "nn.Module"),
        ("import torch as t", "t.nn.Module"),
        ("import torch.nn.functional as F, torch", "torch.nn.Module"),
        ("from torch import nn", "nn.Module"),
        ("from torch import nn as n", "n.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import (Linear, Module as M,)", "M"),
        ("from torch.nn.modules.module import Module", "Module"),
        ("from torch.nn.modules import Module", "Module"),
        ("from torch.nn import *", "Module"),
        ("import torch.nn.modules.module as m", "m.Module"),
        ("from torch import nn", "nn.Linear"),
        ("from torch import nn", "nn.Sequential"),
        ("from torch import nn", "nn.modules.batchnorm._BatchNorm"),
        ("from torch.nn import LayerNorm", "LayerNorm"),
        ("from torch import nn\nBase = nn.Module", "Base"),
        ("from torch import nn", "nn . \\\n  Module"),
        ("try:\n    from torch import nn\nexcept ImportError:\n    nn = None", "nn.Module"),
        ("from torch import nn\nfrom typing import Generic", "nn.Module, Generic[T]"),
        ("from torch import nn", "Mixin, nn.Module, metaclass=Meta"),
        ("from torch import nn\nclass G(nn.Module): pass", "G[int]"),
        ("import lightning as L", "L.LightningModule"),
        ("from transformers import PreTrainedModel", "PreTrainedModel"),
    ],
)
def test_import_spellings(imports: str, base: str) -> None:
    assert "Net" in names(f"{imports}\nclass Net({base}):\n    pass\n")


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.autograd.Function"),
        ("from torch import nn", "nn.Parameter"),
        ("from torch import nn", "object"),
        ("import nn", "nn.Module"),
        ("from torch.utils.data import Dataset", "Dataset"),
        ("", "Module"),
        ("from other import Module", "Module"),
        ("from torch import nn", ""),
        ("Base = Base", "Base"),
    ],
)
def test_no_modules(imports: str, base: str) -> None:
    assert names(f"{imports}\nclass Net({base}):\n    pass\n") == []


def test_indirect_in_one_file_whatever_the_order() -> None:
    source = "class C(B): pass\nclass B(A): pass\nfrom torch import nn\nclass A(nn.Module): pass\nclass D: pass\n"
    assert names(source) == ["C", "B", "A"]


BASE = "from torch import nn\nclass Base(nn.Module):\n    pass\nclass Plain:\n    pass\n"


@pytest.mark.parametrize(
    ("imports", "base", "files"),
    [
        ("from base import Base", "Base", {"base.py": BASE}),
        ("from base import Base as B", "B", {"base.py": BASE}),
        ("import base", "base.Base", {"base.py": BASE}),
        ("import base as b", "b.Base", {"base.py": BASE}),
        ("from .base import Base", "Base", {"base.py": BASE}),
        ("from . import base", "base.Base", {"base.py": BASE}),
        ("from base import *", "Base", {"base.py": BASE}),
        ("from lib.base import Base", "Base", {"lib/__init__.py": "", "lib/base.py": BASE}),
        ("import lib.base", "lib.base.Base", {"lib/__init__.py": "", "lib/base.py": BASE}),
        ("import lib.base", "lib.base.Base", {"lib/base.py": BASE}),  # a namespace package
        ("from lib import Base", "Base", {"lib/__init__.py": "from .base import Base", "lib/base.py": BASE}),
        ("import lib", "lib.Base", {"lib/__init__.py": "from .base import *", "lib/base.py": BASE}),
        ("from lib import B", "B", {"lib/__init__.py": "from .base import Base\nB = Base", "lib/base.py": BASE}),
        (
            "from one import Base",
            "Base",
            {"one.py": "from two import Base", "two.py": "from base import Base", "base.py": BASE},
        ),
    ],
)
def test_bases_in_other_files(imports: str, base: str, files: dict[str, str]) -> None:
    assert names(f"{imports}\nclass Net({base}):\n    pass\n", files) == ["Net"]
    plain = base.replace("Base", "Plain") if "Base" in base else base
    if plain != base and "as" not in imports:
        assert names(f"{imports.replace('Base', 'Plain')}\nclass Net({plain}):\n    pass\n", files) == []


def test_relative_imports_climb() -> None:
    files = {"pkg/__init__.py": "", "pkg/base.py": BASE, "pkg/sub/__init__.py": ""}
    path = Path("/project/pkg/sub/net.py")
    assert names("from ..base import Base\nclass Net(Base): pass\n", files, path) == ["Net"]
    assert names("from pkg.base import Base\nclass Net(Base): pass\n", files, path) == ["Net"]


def test_src_layout_on_disk(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lib"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text(BASE, newline="\r\n")
    script = tmp_path / "scripts" / "net.py"
    source = "from lib.base import Base\nclass Net(Base): pass\n"
    assert [c.name for c in module_classes(source, script)] == ["Net"]


def test_import_cycles_end() -> None:
    files = {"a.py": "from b import X\nfrom c import *", "b.py": "from a import X", "c.py": "from a import *"}
    assert names("from a import X, Y\nclass Net(X): pass\nclass Other(Y): pass\nclass Me(Me): pass\n", files) == []


def test_nested_several_and_conditional() -> None:
    source = (
        "from torch import nn\n"
        "class Outer(nn.Module):\n"
        "    class Inner(nn.Module):\n"
        "        class Deep(nn.Linear): pass\n"
        "    class Child(Inner): pass\n"
        "class Holder:\n"
        "    class Held(nn.Module): pass\n"
        "if True:\n"
        "    class One(nn.Module): pass\n"
        "else:\n"
        "    class One(nn.Module): pass\n"
        "def make():\n"
        "    class Local(nn.Module): pass\n"
    )
    found = classes(source)
    assert [c.name for c in found] == [
        "Outer", "Outer.Inner", "Outer.Inner.Deep", "Outer.Child", "Holder.Held", "One", "One",
    ]  # fmt: skip
    assert not any(c.duplicate for c in found)


def test_a_name_twice_is_reported() -> None:
    source = "from torch import nn\nclass A(nn.Module): pass\nclass B(nn.Module): pass\nclass A(nn.Module): pass\n"
    assert [(c.name, c.duplicate) for c in classes(source)] == [("A", True), ("B", False), ("A", True)]
    source = "from torch import nn\nclass A(nn.Module): pass\nif 1:\n    class A(nn.Module): pass\n"
    assert [c.duplicate for c in classes(source)] == [True, True]


def test_ranges() -> None:
    source = (
        "from torch import nn\n"
        "@one\n"
        "@two(\n  3)\n"
        "class A(\n    nn.Module,\n):\n"
        "    def other(self): pass\n"
        "    @torch.no_grad()\n"
        "    def forward(\n        self,\n        x=lambda: 1,\n    ) -> int:\n"
        "        return x\n"
    )
    (found,) = classes(source)
    lines = source.splitlines()
    assert (found.class_range.start.line, found.class_range.start.column) == (1, 0)
    assert lines[found.class_range.end.line][: found.class_range.end.column] == "):"
    assert found.forward_range is not None
    assert lines[found.forward_range.start.line].lstrip() == "def forward("
    assert lines[found.forward_range.end.line] == "    ) -> int:"
    assert found.whole_range.end.line == len(lines) - 1


@pytest.mark.parametrize(
    ("tail", "forward", "inputs"),
    [
        ("def get_inputs(): return []", "x", "get_inputs"),
        ("def get_inputs(): return []\ndef get_inputs_A(): return []", "x", "get_inputs_A"),
        ("from inputs import get_inputs_A", "x", "get_inputs_A"),
        ("if 1:\n    def get_inputs_A(): return []", "x", "get_inputs_A"),
        ("def get_inputs_B(): return []", "x", None),
        ("", "x", None),
    ],
)
def test_example_inputs(tail: str, forward: str, inputs: str | None) -> None:
    source = f"from torch import nn\nclass A(nn.Module):\n    def forward(self, {forward}): return x\n{tail}\n"
    assert classes(source)[0].inputs == inputs


def test_imported_classes_with_inputs_of_their_own() -> None:
    source = (
        "from a import Norm, Mlp as Gate, Bare\nfrom torch import nn\nclass Own(nn.Module): pass\n"
        "def get_inputs_Norm(): return []\ndef get_inputs_Gate(): return []\ndef get_inputs_Own(): return []\n"
    )
    assert imported_with_inputs(source) == ["Norm", "Gate"]


def test_inputs_of_a_nested_class() -> None:
    source = "from torch import nn\nclass A:\n    class B(nn.Module): pass\ndef get_inputs_{}(): return []\n"
    for name in ("A_B", "B"):
        (found,) = classes(source.format(name))
        assert (found.name, found.inputs) == ("A.B", f"get_inputs_{name}")


BROKEN = [
    "x = (", "def f(", "class ", "if x", "for", 'x = """', "x = '", "@", "return self.", "from torch import", "y = [1,",
    "lambda", "    indented", "else:", "x = {", "import", "f(a, b", "while True:", "try:", "with open(", ")", "]]", "->",
]  # fmt: skip
GOOD = "".join(
    f'class C{i}(nn.Module):\n    """Doc {i}."""\n\n    def forward(self, x):\n        """More."""\n        return x + {i}\n\n\n'
    for i in range(8)
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(BROKEN), st.integers(0, 7), st.sampled_from(["", "        ", "    "]), st.booleans())
def test_an_unfinished_line_loses_no_other_class(broken: str, at: int, indent: str, inside: bool) -> None:
    """The line is typed between two classes, or as the last line of a forward."""
    pieces = GOOD.split("\n\n\n")
    pieces[at] = pieces[at] + f"\n{indent}{broken}" if inside else f"{broken}\n{pieces[at]}"
    found = names("from torch import nn\n" + "\n\n\n".join(pieces))
    assert set(found) >= {f"C{i}" for i in range(8)}


def test_never_raises_on_garbage() -> None:
    for text in (
        "",
        "\x00",
        "\ufeff",
        "class",
        "class :",
        "class A(",
        "\udcff",
        "class A(nn.Module):\udcff",
        "(" * 3000,
    ):
        names(text)


def test_import_is_cheap() -> None:
    """Nothing heavy comes with it: the standard library and tree-sitter alone."""

    def loaded(statement: str) -> set[str]:
        code = f"import sys\n{statement}\nprint(*{{m.split('.')[0] for m in sys.modules}})"
        return set(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        )

    # Some interpreters load more than the standard library by themselves (sitecustomize, editable installs).
    ours = loaded("import kernel_lsp.analysis") - loaded("pass") - sys.stdlib_module_names
    assert {m for m in ours if not m.startswith("_")} == {"kernel_lsp", "tree_sitter", "tree_sitter_python"}

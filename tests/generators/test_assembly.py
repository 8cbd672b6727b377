"""Answers put together with the module: drop-in files that parse and format; test_validated.py validates some."""

import ast
import itertools
import re
import subprocess
import textwrap

import pytest
from ruff import find_ruff_bin

from kernel_lsp.class_schema import Subject
from kernel_lsp.generators.answers import Unusable, extract
from kernel_lsp.generators.assembly import assemble
from kernel_lsp.loading import without
from kernel_lsp.validation.screening import screen

IMPORTS = "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def scale_kernel(x_ptr, w_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets % cols, mask=mask)
    tl.store(out_ptr + offsets, w * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def scale(x, w):
    assert x.is_cuda, "on the GPU"
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, w, out, x.numel(), x.shape[-1], BLOCK=256)
    return out
"""
MODEL = """\
import torch
from torch import nn

FACTOR = 2.0


def doubled(x):
    return x * FACTOR


class Model(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return doubled(x) * self.weight


def get_inputs():
    return [torch.randn(4, 64)]


def get_init_inputs():
    return [64]
"""


def subject(**changes) -> Subject:
    given = {
        "source": MODEL,
        "import_from": "package.layers",
        "base": "Scale",
        "parameters": ["x"],
        "names": ["x"],
        "tensors": ["x"],
        "attributes": ["__init__", "eps", "forward", "register_buffer", "training", "weight"],
        "state": ["weight"],
        "conditions": ["type(x) in _PLAIN", "x.device.type == _DEVICE", "self.eps == 1e-06"],
        "exact": ["x.shape[0] == 4"],
    }
    return Subject(**(given | changes))


def answer(init: str = "", forward: str = "return scale(x, self.weight)", head: str = "self, x", more: str = "") -> str:
    text = IMPORTS + KERNEL + more + "\n\nclass ModelNew(nn.Module):\n"
    if init:
        text += (
            "    def __init__(self, dim, eps=1e-6):\n        super().__init__()\n"
            + textwrap.indent(init, " " * 8)
            + "\n\n"
        )
    return text + f"    def forward({head}):\n" + textwrap.indent(forward, " " * 8) + "\n"


def assembled(text: str, about: Subject | None = None, exact: bool = False) -> str:
    source = assemble(extract(text, "stop"), about or subject(), exact=exact, generator="kernelllm")
    compile(source, "kernel.py", "exec")
    return source


def class_of(source: str) -> str:
    """The drop-in class up to its envelope."""
    last = ast.parse(source).body[-1]
    assert isinstance(last, ast.ClassDef)
    return ast.unparse(last).partition("def _in_envelope")[0]


def refused(text: str, about: Subject | None = None) -> Unusable:
    with pytest.raises(Unusable) as raised:
        assembled(text, about)
    return raised.value


def test_the_file_is_the_class_with_another_forward():
    source = assembled(answer("self.eps = eps\nself.weight = nn.Parameter(torch.ones(dim))"))
    assert "from package.layers import Scale\n" in source
    assert "import torch\nimport triton\nimport triton.language as tl\n\nfrom package" in source
    assert "class ScaleTriton(Scale):" in source
    assert "nn.Parameter(" not in source.partition("class ScaleTriton")[2]
    assert (
        "if not self._in_envelope(x):\n            return super().forward(x)\n        return scale(x, self.weight)"
        in source
    )
    assert "and self.eps == 1e-06" in source and "x.shape[0]" not in source
    assert "kernelllm" in ast.get_docstring(ast.parse(source))
    assert "and x.shape[0] == 4" in assembled(answer(), exact=True)


def test_the_class_of_a_file_that_no_import_statement_can_name():
    odd = subject(import_from="19_Scale", import_file="../19_Scale.py", base="Outer.Scale")
    source = assembled(answer(more="\n\nOuter = 3\n", forward="return scale(x, self.weight) * Outer"), odd)
    assert 'EagerOuter = _load_module("../19_Scale.py", "19_Scale").Outer\n' in source
    assert "class ScaleTriton(EagerOuter.Scale):" in source
    assert screen(without(source, "19_Scale"), "ScaleTriton") is None
    assert "importlib" in screen(source, "ScaleTriton")[0]


def test_cuda_by_name_is_where_the_tensors_are():
    forward = """\
if not x.is_cuda:
    x = x.cuda()
assert x.is_cuda and x.is_contiguous()
y = torch.empty(x.shape, device="cuda", dtype=x.dtype)
z = torch.zeros(3, device=torch.device('cuda:0')).to("cuda")
torch.cuda.synchronize()
if True:
    assert x.is_cuda
return scale(x, self.weight.cuda())"""
    source = assembled(answer(forward=forward))
    inside = class_of(source)
    assert "is_cuda" not in source and "cuda" not in inside and "assert" not in source
    assert "device=_DEVICE" in inside and "torch.device(_DEVICE)).to(_DEVICE)" in inside
    assert "if not x.device.type == _DEVICE:" in inside
    assert "scale(x, self.weight)" in inside


@pytest.mark.parametrize(
    ("init", "read", "becomes"),
    [
        ("self.w = nn.Parameter(torch.ones(dim))", "self.w", "self.weight"),
        ("self.gamma = torch.nn.Parameter(torch.randn(dim))", "self.gamma", "self.weight"),
        ("self.anything = nn.Parameter(torch.rand(dim))", "self.anything", "self.weight"),
        ("self.register_parameter('g', nn.Parameter(torch.ones(dim)))", "self.g", "self.weight"),
        ("self.epsilon = eps", "self.epsilon", "self.eps"),
        ("self.w = self.weight", "self.w", "self.weight"),
    ],
)
def test_other_names_for_what_the_module_holds(init, read, becomes):
    inside = class_of(assembled(answer(init, f"return scale(x, {read})")))
    assert f"scale(x, {becomes})" in inside and "__init__" not in inside


LINEAR = MODEL.replace(
    "self.weight = nn.Parameter(torch.ones(dim))", "self.a = nn.Linear(dim, dim)\n        self.b = nn.Linear(dim, dim)"
)
TWO = {
    "source": LINEAR,
    "attributes": ["a", "b", "eps", "training"],
    "state": ["a.weight", "a.bias", "b.weight", "b.bias"],
}


def test_submodules_and_their_parameters_by_kind_and_order():
    layers = "self.fc1 = nn.Linear(dim, 2 * dim)\nself.fc2 = nn.Linear(2 * dim, dim)"
    inside = class_of(assembled(answer(layers, "return scale(self.fc2(x), self.fc1.weight)"), subject(**TWO)))
    assert "scale(self.b(x), self.a.weight)" in inside
    made = [f"self.{n} = nn.Parameter(torch.empty(dim))" for n in ("w1", "b1", "w2", "b2")]
    inside = class_of(
        assembled(answer("\n".join(made), "return scale(x + self.b2, self.w2 + self.w1)"), subject(**TWO))
    )
    assert "scale(x + self.b.bias, self.b.weight + self.a.weight)" in inside
    direct = [f"self.{n} = nn.Parameter(torch.empty(dim))" for n in ("a_weight", "b_bias")]
    inside = class_of(
        assembled(answer("\n".join(direct), "return scale(x + self.b_bias, self.a_weight)"), subject(**TWO))
    )
    assert "scale(x + self.b.bias, self.a.weight)" in inside
    listed = subject(state=["layers.0.weight", "layers.0.bias"], attributes=["layers"])
    inside = class_of(assembled(answer("self.weight = nn.Parameter(torch.empty(dim))"), listed))
    assert "scale(x, self.layers[0].weight)" in inside


def test_what_the_module_lacks_is_set_beside_it():
    init = """\
half = dim // 2
self.unused = nn.Parameter(torch.ones(3))
self.half = half
self.block = 128
self.act = nn.ReLU()
self.drop = nn.Dropout(0.1)
self.table = torch.arange(half, dtype=torch.float32).cuda()
self.register_buffer("other", torch.ones(half))
self.eps = eps * 2"""
    read = "return scale(self.drop(self.act(x)), self.table + self.other)[: self.half, self.block] + self.eps"
    inside = class_of(assembled(answer(init, read)))
    assert "block = 128" in inside and "act = nn.ReLU()" in inside and "drop = nn.Dropout(0.1).eval()" in inside
    assert "super().__init__(*args, **kwargs)\n        self._set_up(*args, **kwargs)" in inside
    assert "half = dim // 2\n" in inside and "self.half = half" in inside
    assert "self.register_buffer('table', torch.arange(half, dtype=torch.float32), persistent=False)" in inside
    assert "self.register_buffer('other', torch.ones(half), persistent=False)" in inside
    assert "self._kernel_eps = eps * 2" in inside and "+ self._kernel_eps" in inside
    assert "unused" not in inside


@pytest.mark.parametrize(
    ("init", "forward", "head", "reason"),
    [
        (
            "self.w = nn.Parameter(torch.ones(1))\nself.v = nn.Parameter(torch.ones(1))",
            "return scale(x, self.v + self.w)",
            "self, x",
            "its state differs",
        ),
        ("self.conv = nn.Conv2d(3, 3, 3)", "return scale(self.conv(x), self.weight)", "self, x", "its state differs"),
        ("", "return scale(x, self.nothing)", "self, x", "reads self.nothing"),
        ("", "return scale(x, y)", "self, x, y", r"takes \(x, y\), the module's takes \(x\)"),
        (
            "for i in range(2):\n    self.k = i\n    self.weight = nn.Parameter(torch.ones(i))",
            "return scale(x, self.k)",
            "self, x",
            "its state differs",
        ),
    ],
)
def test_what_cannot_stand_for_the_module_is_refused_with_its_line(init, forward, head, reason):
    text = answer(init, forward, head)
    refusal = refused(text)
    assert re.search(reason, refusal.reason)
    assert refusal.line is not None and text.split("\n")[refusal.line - 1].strip()


def test_forward_by_other_names_and_in_another_order():
    two = subject(parameters=["x", "mask=None"], names=["x", "mask"], tensors=["x", "mask"])
    assert "return self._forward(mask, x)" in assembled(answer(head="self, mask, x"), two)
    assert "return self._forward(x, mask)" in assembled(answer(head="self, a, b", forward="return scale(a, b)"), two)
    assert "takes (x)" in refused(answer(), two).reason
    pinned = subject(parameters=["x", "mask=None"], names=["x", "mask"], tensors=["x"])
    assert "return self._forward(x)\n" in assembled(answer(), pinned)
    keyword = subject(parameters=["x", "*", "y"], names=["x", "y=y"], tensors=["x", "y"])
    assert "def forward(self, x, *, y):\n        if not self._in_envelope(x, y=y):" in assembled(
        answer(head="self, x, *, y"), keyword
    )
    free = subject(parameters=["*args"], names=["*args"], tensors=["args[0]"])
    assert "return self._forward(args[0])" in assembled(answer(), free)


def test_decorators_of_the_answers_forward_never_reach_eager():
    text = answer().replace("    def forward(self, x)", "    @torch.no_grad()\n    def forward(self, x)")
    inside = class_of(assembled(text))
    assert "@torch.no_grad()\n    def _forward(self, x)" in inside
    assert "return super().forward(x)" in inside


def test_names_in_the_way():
    more = "\n\ndef Scale(x):\n    return x\n\n\ndef ScaleTriton(x):\n    return x\n\n\n_PLAIN = 3\n"
    source = assembled(answer(forward="return scale(ScaleTriton(Scale(x)), self.weight) * _PLAIN", more=more))
    assert "from package.layers import Scale as EagerScale" in source
    assert "class ScaleTriton(EagerScale):" in source and "def ScaleTriton_(x)" in source
    assert "scale(ScaleTriton_(Scale(x)), self.weight) * _PLAIN_" in source and "_PLAIN_ = 3" in source
    nested = assembled(answer(), subject(base="Outer.Inner"))
    assert "from package.layers import Outer\n" in nested and "class InnerTriton(Outer.Inner):" in nested


def test_methods_of_the_answer_do_not_replace_the_modules_own():
    text = answer(forward="return self.launch(x, self.BLOCK) + ModelNew.fixed(x)")
    text += "\n    def launch(self, x, block):\n        return scale(x, self.weight)\n"
    text += "\n    @staticmethod\n    def fixed(x):\n        return x.anything\n\n    BLOCK = 64\n\n    def spare(self):\n        pass\n"
    inside = class_of(assembled(text, subject(attributes=["weight", "launch", "BLOCK"])))
    assert "self._kernel_launch(x, self._kernel_BLOCK) + ScaleTriton.fixed(x)" in inside
    assert "def _kernel_launch(" in inside and "_kernel_BLOCK = 64" in inside
    assert "@staticmethod\n    def fixed(x)" in inside and "spare" not in inside


def test_helpers_come_from_the_modules_own_file_where_the_answer_leaves_them_out():
    source = assembled(answer(forward="return scale(doubled(x), self.weight)"))
    assert "FACTOR = 2.0" in source and "def doubled(x):" in source and "get_inputs" not in source


def test_a_class_derived_from_model_derives_from_the_users():
    text = answer().replace("ModelNew(nn.Module)", "ModelNew(Model)")
    for whole in (
        text,
        text.replace("class ModelNew", MODEL.partition("FACTOR")[2].partition("\n")[2] + "\n\nclass ModelNew"),
    ):
        source = assembled(whole)
        assert "class ScaleTriton(Scale):" in source and "class Model" not in source


HELPER = """

class Scaler(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return scale(x, self.weight)
"""


def test_a_helper_module_computes_with_the_modules_own_parameters():
    norm = subject(
        source=MODEL.replace("self.weight = nn.Parameter(torch.ones(dim))", "self.norm = nn.RMSNorm(dim)"),
        attributes=["norm", "eps"],
        state=["norm.weight"],
    )
    for name in ("norm", "other"):
        source = assembled(answer(f"self.{name} = Scaler(dim)", f"return self.{name}(x)", more=HELPER), norm)
        assert "return Scaler.forward(self.norm, x)" in source
    lacking = HELPER.replace("self.weight)", "self.weight * self.factor)")
    assert (
        "nothing for self.norm.factor"
        in refused(answer("self.norm = Scaler(dim)", "return self.norm(x)", more=lacking), norm).reason
    )


def test_unused_imports_and_statements_of_the_answer_are_left_out():
    text = "import os, sys\nimport numpy as np\nfrom typing import Optional, List\n" + answer(
        head="self, x: Optional[int]", more="\n\ndef spare():\n    return os.name\n"
    )
    source = assembled(text)
    assert "import os" not in source and "numpy" not in source and "List" not in source and "spare" not in source


INITS = [
    "",
    "self.weight = nn.Parameter(torch.ones(dim))",
    "self.gamma, self.epsilon = nn.Parameter(torch.ones(dim)), eps\nself.block = 64",
    "self.w = nn.Parameter(torch.ones(dim))\nself.table = torch.arange(dim)\nself.dim = dim",
    "if dim > 3:\n    self.mode = 'wide'\nelse:\n    self.mode = 'narrow'\nself.act = nn.GELU()",
]
FORWARDS = [
    "return scale(x, self.weight)",
    '"""Scales."""\n# with a kernel\nx = x.contiguous(); y = x\nreturn scale(y, self.weight)',
    "assert x.is_cuda\ngrid = lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)\nout = torch.empty(\n    x.shape,\n  device='cuda',\n)\nscale_kernel[grid](\nx, self.weight, out, x.numel(), 3, BLOCK=64,\n)\nreturn out",
]
READS = ["", "self.gamma", "self.dim", "self.table", "self.mode", "self.act(x)", "self.epsilon"]
SUBJECTS = [subject(), subject(base="A.B"), subject(parameters=["x", "y=1"], names=["x", "y"]), subject(conditions=[])]
STYLES = [
    lambda text: text,
    lambda text: text.replace("    ", "\t"),
    lambda text: text.replace("    ", "  "),
    lambda text: "Sure — here:\n```python\n" + text.replace("# with", "# “with” é") + "```\n",
    lambda text: text.replace("(self, x)", "(self, x: torch.Tensor) -> torch.Tensor"),
]


def test_whatever_is_put_together_parses_and_formats(tmp_path):
    written = 0
    every = itertools.product(INITS, FORWARDS, READS, SUBJECTS, STYLES)
    for i, (init, forward, read, about, style) in enumerate(itertools.islice(every, 0, None, 4)):
        text = style(answer(init, (f"unused = {read}\n" if read else "") + forward))
        try:
            source = assembled(text, about, exact=bool(i % 2))
        except Unusable as unusable:
            assert unusable.reason.startswith(("it reads self.", "its state differs")), (unusable.reason, text)
            continue
        (tmp_path / f"kernel_{i}.py").write_text(source, "utf-8")
        written += 1
    assert written > 100
    subprocess.run([find_ruff_bin(), "format", "--isolated", "-q", str(tmp_path)], check=True, timeout=60)
    checked = [find_ruff_bin(), "check", "--isolated", "-q", "--select", "F821,F811,E9", str(tmp_path)]
    done = subprocess.run(checked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[:2000]


def test_an_answer_that_calls_libdevice_runs_eagerly_where_the_interpreter_has_none():
    text = answer().replace(IMPORTS, IMPORTS + "from triton.language.extra import libdevice\n")
    assert "libdevice" not in assembled(text)  # it is not used
    used = assembled(text.replace("w * tl.load(", "w * libdevice.tanh("))
    assert used.index("_DEVICE = ") < used.index("    _DEVICE = ") < used.index("def scale_kernel")

"""A kernel file is made into another class's only where it is sure what everything in it means."""

import dataclasses

import pytest

from kernel_lsp import class_schema
from kernel_lsp.class_schema import Interface, Specimen, TensorSpec
from kernel_lsp.generators.adapting import Origin, Unsuitable, adapted

KERNEL = '''"""Norm as one Triton kernel: Norm of ä."""

import math

import torch
import triton
import triton.language as tl

from layers import Norm

_PLAIN = (torch.Tensor, torch.nn.Parameter)


@triton.jit
def norm_kernel(x_ptr, weight_ptr):
    pass  # the kernel


def norm(x, weight, eps):
    return norm_kernel[(1,)](x, weight)  # ä


class NormTriton(Norm):
    """Norm: the kernel where it was validated, eager elsewhere."""

    def forward(self, x, *, mask=None):
        if not self._in_envelope(x, mask=mask):
            return super().forward(x, mask=mask)
        return norm(x, self.inner[0].weight, self.eps)  # by rule

    def _in_envelope(self, x, *, mask=None):
        """Whether it is."""
        try:
            return (
                mask is None
                and type(x) in _PLAIN
                and (x.dim() == 2 or x.dim() == 3)
                and type(weight := self.inner[0].weight) in _PLAIN
                and weight.shape == (4,)
                and type(self.inner) is torch.nn.Sequential
                and type(self.n) is int
                and self.n == 4
                and self.eps == 1e-05
            )
        except (AttributeError, LookupError):
            return False  # a module that was built otherwise runs eagerly
'''

ORIGIN = Origin("Norm", ["x", "mask"], [TensorSpec("x", [8, 4], "float32")], ["inner.0.weight"])
SPECIMEN = Specimen("Outer.Scale", "other", "", "", [TensorSpec("hidden", [9, 4], "float32")])
SPECIMEN.forward, SPECIMEN.state = ["hidden", "gate"], ["gain"]
INTERFACE = Interface(["hidden", "*", "gate=None"], ["hidden", "gate=gate"], ["gate is None"])
INTERFACE.settings = ["self.eps == 1e-05", "type(self.size) is int and self.size == 4"]
INTERFACE.attributes = ["gain", "eps", "size"]

EXPECTED = '''"""Outer.Scale as one Triton kernel: Norm of ä."""

import math

import torch
import triton
import triton.language as tl

from other import Outer

_PLAIN = (torch.Tensor, torch.nn.Parameter)


@triton.jit
def outer_scale_kernel(x_ptr, weight_ptr):
    pass  # the kernel


def outer_scale(x, weight, eps):
    return outer_scale_kernel[(1,)](x, weight)  # ä


class ScaleTriton(Outer.Scale):
    """Scale: the kernel where it was validated, eager elsewhere."""

    def forward(self, hidden, *, gate=None):
        if not self._in_envelope(hidden, gate=gate):
            return super().forward(hidden, gate=gate)
        return outer_scale(hidden, self.gain, self.eps)  # by rule

    def _in_envelope(self, hidden, *, gate=None):
        """Whether it is."""
        try:
            return (
                gate is None
                and type(hidden) in _PLAIN
                and (hidden.dim() == 2 or hidden.dim() == 3)
                and type(weight := self.gain) in _PLAIN
                and weight.shape == (4,)
                and type(self.size) is int
                and self.size == 4
                and self.eps == 1e-05
            )
        except (AttributeError, LookupError):
            return False  # a module that was built otherwise runs eagerly
'''


def test_what_names_the_class_is_changed_and_the_rest_stays():
    assert adapted(KERNEL, ORIGIN, SPECIMEN, INTERFACE) == EXPECTED


def test_there_and_back_again_computes_what_it_computed():
    there = adapted(KERNEL, ORIGIN, SPECIMEN, INTERFACE)
    origin = Origin("Outer.Scale", ["hidden", "gate"], SPECIMEN.inputs, ["gain"])
    specimen = Specimen("Norm", "layers", "", "", ORIGIN.inputs, forward=["x", "mask"], state=["inner.0.weight"])
    settings = ["type(self.inner) is torch.nn.Sequential", "type(self.n) is int and self.n == 4", "self.eps == 1e-05"]
    interface = Interface(["x", "*", "mask=None"], ["x", "mask=mask"], ["mask is None"], settings)
    back = adapted(there, origin, specimen, interface)
    assert back == KERNEL


def test_a_file_that_no_import_can_name():
    specimen = dataclasses.replace(SPECIMEN, file="../9.py", module="9")
    text = adapted(KERNEL, ORIGIN, specimen, INTERFACE)
    assert 'Outer = _load_module("../9.py", "9").Outer' in text
    origin = Origin("Outer.Scale", ["hidden", "gate"], SPECIMEN.inputs, ["gain"])
    assert "_load_module" not in adapted(text, origin, SPECIMEN, INTERFACE)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("x, self.inner", "x, self.other"), "self.other"),
        (("self.eps)  #", "self)  #"), "uses self"),
        (("        return norm(", "        self.inner[0].weight = None\n        return norm("), "sets self"),
        (("        return norm(", "        hidden = 1\n        return norm("), "the name hidden is taken"),
        (("        return norm(", "        f = lambda x: x\n        return norm("), "functions inside"),
        (("import math", "import numpy"), "imports numpy"),
        (("import math", "from . import helper"), "imports"),
        (("import Norm\n", "import Norm, other\n"), "with others"),
        (("def norm(x", "def Outer(x"), None),
        (("weight, eps):", "weight, Norm):"), "binds Norm"),
        (("def norm(x", "def ScaleTriton(x"), "taken"),
        (("class NormTriton(Norm)", "class NormTriton(Norm, dict)"), "derives"),
        (("    def forward", "    size = 4\n\n    def forward"), "more than methods"),
        (("    def forward", "    def __init__(self):\n        pass\n\n    def forward"), "not a forward"),
        (("    def forward", "    def gain(self):\n        pass\n\n    def forward"), "an attribute gain"),
        (("mask is None\n                and ", ""), "besides tensors"),
        (("self.n == 4", "(n := self.n) == 4"), "names something"),
        (("        try:", "        print(x)\n        try:"), "not one condition"),
        (("class NormTriton", "class Other:\n    pass\n\n\nclass NormTriton"), "alone"),
        (("class NormTriton", "class NormTriton!"), "parse"),
    ],
)
def test_what_is_not_sure_is_not_done(changed, says):
    assert KERNEL.count(changed[0]) == 1
    kernel = KERNEL.replace(*changed)
    if says is None:  # another alias does
        assert "from other import Outer as Outer_module" in adapted(kernel, ORIGIN, SPECIMEN, INTERFACE)
        return
    with pytest.raises(Unsuitable, match=says):
        adapted(kernel, ORIGIN, SPECIMEN, INTERFACE)


@pytest.mark.parametrize(
    "specimen",
    [
        {"forward": ["hidden"]},
        {"forward": ["hidden", "gate", "more"]},
        {"inputs": []},
        {"inputs": [TensorSpec("gate", [9, 4], "float32")]},
        {"inputs": [TensorSpec("hidden[0]", [9, 4], "float32")]},
        {"state": ["gain", "bias"]},
        {"forward": ["torch", "gate"], "inputs": [TensorSpec("torch", [9, 4], "float32")]},
    ],
)
def test_a_class_that_is_given_or_holds_something_else(specimen):
    with pytest.raises(Unsuitable):
        adapted(KERNEL, ORIGIN, dataclasses.replace(SPECIMEN, **specimen), INTERFACE)


def test_other_kinds_of_parameters_and_pinned_sizes():
    positional = dataclasses.replace(INTERFACE, parameters=["hidden", "gate=None"], names=["hidden", "gate"])
    with pytest.raises(Unsuitable, match="another way"):
        adapted(KERNEL, ORIGIN, SPECIMEN, positional)
    with pytest.raises(Unsuitable, match="other sizes"):
        adapted(KERNEL, dataclasses.replace(ORIGIN, pinned=True), SPECIMEN, INTERFACE)
    same = dataclasses.replace(SPECIMEN, inputs=[class_schema.TensorSpec("hidden", [8, 4], "float32")])
    assert adapted(KERNEL, dataclasses.replace(ORIGIN, pinned=True), same, INTERFACE) == EXPECTED

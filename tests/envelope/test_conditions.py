"""Outside what was validated the generated class runs the eager forward: real files, called for real."""

from __future__ import annotations

import enum
import functools
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


class Scaled(nn.Module):
    """Forward reads a number, a function, a child's setting and an optional argument."""

    def __init__(self, eps: float = 1e-5, activation: Callable[..., Any] = torch.relu) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16, eps=eps)
        self.activation = activation
        self.scale = 2.0

    def forward(self, x: torch.Tensor, shift: float = 0.5) -> torch.Tensor:
        return self.activation(self.norm(x)) * self.scale + shift


class Marked(torch.Tensor):
    """A subclass may compute anything; the kernel knows nothing of it."""


def load(source: str, path: Path) -> Any:
    """The generated module. Its kernels would run under the interpreter; nothing here may reach them."""
    path.write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    assert loaded._DEVICE == "cpu"
    return loaded


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = Scaled().eval()
    candidate = synthesize(module, capture(module, (X,)), class_name="Scaled", import_from=__name__)[0]
    return load(candidate.source, tmp_path_factory.mktemp("generated") / "scaled_triton.py")


def frozen(kind: Any, **init: Any) -> Any:
    module = kind(**init).eval()
    return module.requires_grad_(False)


def test_the_case_it_was_made_for_is_inside(generated: Any) -> None:
    kernel = frozen(generated.ScaledTriton)
    assert kernel._in_envelope(torch.randn(4, 16))
    assert kernel._in_envelope(torch.randn(9, 16))
    with torch.no_grad():
        assert generated.ScaledTriton().eval()._in_envelope(torch.randn(4, 16))


def test_a_call_looks_no_tensor_up_as_nn_module_does(generated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``self.norm.weight`` takes microseconds; the envelope has looked at it already."""
    kernel, looked_up = frozen(generated.ScaledTriton), list[str]()
    slow = nn.Module.__getattr__
    monkeypatch.setattr(nn.Module, "__getattr__", lambda self, name: looked_up.append(name) or slow(self, name))
    monkeypatch.setattr(generated, "scaled", lambda *given: given)
    x, weight, bias = kernel.forward(X)
    assert not looked_up
    assert x is X and weight is kernel.norm.weight and bias is kernel.norm.bias


X = torch.randn(4, 16)
OUTSIDE: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "another eps": (lambda kind: frozen(kind, eps=0.5), (X,)),
    "another function": (lambda kind: frozen(kind, activation=torch.sigmoid), (X,)),
    "another width": (lambda kind: frozen(kind), (torch.randn(4, 5, 16),)),
    "another dtype": (lambda kind: frozen(kind).double(), (X.double(),)),
    "no element": (lambda kind: frozen(kind), (torch.randn(0, 16),)),
    "memory that holds the negative": (
        lambda kind: frozen(kind),
        (torch.randn(4, 16, dtype=torch.cfloat).conj().imag,),
    ),
    "a subclass of Tensor": (lambda kind: frozen(kind), (X.as_subclass(Marked),)),
    "another argument": (lambda kind: frozen(kind), (X, 0.75)),
    "gradients of the parameters": (lambda kind: kind().eval(), (X,)),
    "gradients of the input": (lambda kind: frozen(kind), (X.clone().requires_grad_(),)),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_outside_it_eager_runs(what: str, generated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make, arguments = OUTSIDE[what]
    kernel, eager = make(generated.ScaledTriton), make(Scaled)
    eager.load_state_dict(kernel.state_dict())

    def launched(*_: Any) -> None:
        raise AssertionError("the kernel ran outside its envelope")

    monkeypatch.setattr(generated, "scaled", launched)
    assert not kernel._in_envelope(*arguments)
    result, expected = kernel(*arguments), eager(*arguments)
    assert torch.equal(result, expected) and result.requires_grad == expected.requires_grad


def test_a_setting_changed_later_is_outside(generated: Any) -> None:
    kernel = frozen(generated.ScaledTriton)
    kernel.scale = 3.0
    assert not kernel._in_envelope(X)
    kernel.scale = 2.0
    kernel.norm = nn.RMSNorm(16).requires_grad_(False)
    assert not kernel._in_envelope(X)
    kernel.norm = nn.LayerNorm(16).requires_grad_(False)
    kernel.norm.weight = nn.Parameter(torch.ones(32)[::2], requires_grad=False)
    assert not kernel._in_envelope(X), "a parameter that is not contiguous"


def test_under_vmap_eager_runs(generated: Any) -> None:
    """A batched tensor says that it is a torch.Tensor of fewer dimensions, and has no memory."""
    kernel, eager = frozen(generated.ScaledTriton), frozen(Scaled)
    batch = torch.randn(3, *X.shape)
    with torch.no_grad():
        assert torch.equal(torch.vmap(kernel)(batch), torch.vmap(eager)(batch))
    assert kernel._in_envelope(X)


def test_with_forward_mode_gradients_eager_runs(generated: Any) -> None:
    kernel, eager, along = frozen(generated.ScaledTriton), frozen(Scaled), torch.randn(4, 16)
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(X, along)
        assert not kernel._in_envelope(dual)
        tangent = forward_ad.unpack_dual(kernel(dual)).tangent
        assert torch.equal(tangent, forward_ad.unpack_dual(eager(dual)).tangent)
    assert kernel._in_envelope(X)
    result = torch.func.jvp(kernel, (X,), (along,))
    assert all(map(torch.equal, result, torch.func.jvp(eager, (X,), (along,))))


def test_what_torch_jit_traces_is_eager(generated: Any) -> None:
    kernel = frozen(generated.ScaledTriton)
    with torch.no_grad():
        traced = torch.jit.trace(kernel, (X,), check_trace=False)
        other = torch.randn(4, 16)
        assert torch.equal(traced(other), frozen(Scaled)(other))
        assert kernel._in_envelope(X)


def test_under_autocast_eager_runs(generated: Any) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert not frozen(generated.ScaledTriton)._in_envelope(X)


class Way(enum.Enum):
    ADD = 1
    DOUBLE = 2


HALF = np.float64(0.5)
GELU = functools.partial(torch.nn.functional.gelu, approximate="tanh")


class Varied(nn.Module):
    """What the constructor is given shows in the module's structure, or in settings that are no plain numbers."""

    def __init__(
        self,
        *,
        depth: int = 2,
        dims: tuple[int, ...] = (1,),
        way: Way = Way.ADD,
        dtype: torch.dtype = torch.float32,
        temperature: float = 2.0,
        slope: float = 0.1,
        hidden: float = 1.5,
        scale: Any = HALF,
        activation: Callable[..., Any] = GELU,
        bias: bool = False,
        affine: bool = True,
        gate: bool = False,
    ) -> None:
        super().__init__()
        self.dims, self.way, self.dtype, self.options, self._hidden = dims, way, dtype, {"slope": slope}, hidden
        self.temperature = torch.tensor(temperature)  # no buffer
        self.scale, self.activation, self.affine = scale, activation, affine
        self.layers = nn.Sequential(*[nn.ReLU() for _ in range(depth)])
        self.named = nn.ModuleDict({"a-b": nn.Linear(8, 8, bias=bias)})
        self.dropout = nn.Dropout()
        if affine:
            self.weight = nn.Parameter(torch.full((8,), 0.75))
        if gate:
            self.gate = nn.Sigmoid()

    def forward(self, x: torch.Tensor, least: float = float("-inf")) -> torch.Tensor:
        y = self.activation(self.layers(self.named["a-b"](x))) * self.temperature * self._hidden * self.scale
        y = y + 1 if self.way is Way.ADD else y * 2
        y = self.dropout(y - y.mean(self.dims, keepdim=True))
        y = y * self.weight if self.affine else y
        y = self.gate(y) if hasattr(self, "gate") else y
        return torch.nn.functional.leaky_relu(y, self.options["slope"]).clamp(min=least).to(self.dtype)


class Linear(nn.Linear):
    """Another Linear than torch's, under the same name."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 5


Y = torch.randn(3, 4, 8)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = Varied().eval()
    candidate = synthesize(module, capture(module, (Y,)), class_name="Varied", import_from=__name__)[0]
    return load(candidate.source, tmp_path_factory.mktemp("varied") / "varied_triton.py")


def test_names_that_are_no_identifiers_and_numbers_of_numpy_are_inside(varied: Any) -> None:
    assert frozen(varied.VariedTriton)._in_envelope(Y)


OTHERWISE: list[dict[str, Any]] = [
    {"depth": 1},
    {"depth": 3},
    {"dims": (2,)},
    {"way": Way.DOUBLE},
    {"dtype": torch.float16},
    {"temperature": 3.0},
    {"slope": 0.5},
    {"hidden": 9.0},
    {"scale": 2.0},
    {"activation": torch.tanh},
    {"activation": functools.partial(torch.nn.functional.gelu, approximate="none")},
    {"bias": True},
    {"affine": False},
    {"gate": True},
]


@pytest.mark.parametrize("init", OTHERWISE, ids=lambda init: re.sub(r" at 0x\w+", "", str(init)))
def test_constructed_otherwise_eager_runs(init: dict[str, Any], varied: Any) -> None:
    kernel, eager = frozen(varied.VariedTriton, **init), frozen(Varied, **init)
    eager.load_state_dict(kernel.state_dict())
    assert not kernel._in_envelope(Y)
    assert torch.equal(kernel(Y), eager(Y))


@pytest.mark.parametrize("least", [0.0, 0, torch.zeros(8), float("nan")], ids=str)
def test_another_number_or_a_tensor_in_its_place_is_outside(least: Any, varied: Any) -> None:
    assert not frozen(varied.VariedTriton)._in_envelope(Y, least)


def test_what_is_done_to_submodules_later_is_outside(varied: Any) -> None:
    kernel = frozen(varied.VariedTriton)
    handle = kernel.layers[0].register_forward_hook(lambda module, inputs, output: output * 2)
    assert not kernel._in_envelope(Y)
    handle.remove()
    kernel.layers[0].forward = lambda x: x * 2.0  # as tools do that move or quantise a module's weights
    assert not kernel._in_envelope(Y)
    del kernel.layers[0].forward
    kernel.dropout.train()  # Monte-Carlo dropout: the rest stays in eval mode
    assert not kernel._in_envelope(Y)
    kernel.dropout.eval()
    assert kernel._in_envelope(Y)
    kernel.named["a-b"] = Linear(8, 8, bias=False).requires_grad_(False)
    assert not kernel._in_envelope(Y)
    del kernel.named["a-b"]
    assert not kernel._in_envelope(Y)


class Normed(nn.Module):
    """``weight_norm`` of this form computes the weight in a hook before forward."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Linear(8, 8)
        self.normed = nn.utils.weight_norm(nn.Linear(8, 8))
        self.after = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.normed(self.plain(x)))


def _moved_hook(module: nn.Module) -> Any:
    """What was called before forward is called after it, until the handle removes that and puts it back."""
    before = dict(module._forward_pre_hooks)
    module._forward_pre_hooks.clear()
    (hook,) = before.values()
    after = module.register_forward_hook(lambda *_: None)
    module._forward_hooks[after.id] = hook

    class Handle:
        def remove(self) -> None:
            after.remove()
            module._forward_pre_hooks.update(before)

    return Handle()


_HOOKS: dict[str, Callable[[Any], Any]] = {
    "on a submodule without": lambda k: k.plain.register_forward_hook(lambda module, inputs, output: output * 2),
    "before a submodule without": lambda k: k.after.register_forward_pre_hook(lambda module, inputs: None),
    "on the one that has one": lambda k: k.normed.register_forward_hook(lambda module, inputs, output: output * 2),
    "before the one that has one": lambda k: k.normed.register_forward_pre_hook(lambda module, inputs: None),
    "after it in place of the one before": lambda k: _moved_hook(k.normed),
    "on all modules": lambda _: nn.modules.module.register_module_forward_hook(lambda module, inputs, output: None),
    "before all modules": lambda _: nn.modules.module.register_module_forward_pre_hook(lambda module, inputs: None),
}


@pytest.fixture(scope="module")
def normed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module, x = Normed().eval(), torch.randn(4, 8)
    made = synthesize(module, capture(module, (x,)), class_name="Normed", import_from=__name__)
    return load(made[0].source, tmp_path_factory.mktemp("normed") / "normed_triton.py").NormedTriton


@pytest.mark.parametrize("hook", _HOOKS)
def test_hooks_are_noticed_where_one_was_there_at_validation(hook: str, normed: Any) -> None:
    kernel, x = normed().eval(), torch.randn(4, 8)
    with torch.no_grad():
        assert kernel._in_envelope(x)
        handle = _HOOKS[hook](kernel)
        try:
            assert not kernel._in_envelope(x)
        finally:
            handle.remove()
        assert kernel._in_envelope(x)
        kernel.normed.forward = lambda x: x
        assert not kernel._in_envelope(x)


class Times(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def test_an_equal_number_of_another_type_changes_the_dtype_of_integers(tmp_path: Path) -> None:
    module = Times(2)
    whole = torch.arange(12).reshape(3, 4)
    candidate = synthesize(module, capture(module, (whole,)), class_name="Times", import_from=__name__)[0]
    kind = load(candidate.source, tmp_path / "times_triton.py").TimesTriton
    assert kind(2)._in_envelope(whole)
    assert not kind(2.0)._in_envelope(whole) and kind(2.0)(whole).dtype == torch.float32


class Activated(nn.Module):
    """Its input is read again after an activation, and its norms have no weights whose shapes tell of them."""

    def __init__(self, inplace: bool = False, shape: tuple[int, ...] = (8,), track: bool = True) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape, elementwise_affine=False)
        self.statistics = nn.InstanceNorm1d(4, track_running_stats=True)
        self.statistics.track_running_stats = track
        self.activation = nn.SiLU(inplace)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x) + self.statistics(self.norm(x))


@pytest.mark.parametrize("init", [{"inplace": True}, {"shape": (4, 8)}, {"track": False}], ids=str)
def test_a_setting_of_torch_that_no_shape_tells_of_is_asked_for(init: dict[str, Any], tmp_path: Path) -> None:
    module, x = Activated().eval(), torch.randn(3, 4, 8)
    candidate = synthesize(module, capture(module, (x,)), class_name="Activated", import_from=__name__)[0]
    kind = load(candidate.source, tmp_path / "activated_triton.py").ActivatedTriton
    other = kind(**init).eval()
    assert kind().eval()._in_envelope(x) and not other._in_envelope(x)
    assert torch.equal(other(x.clone()), Activated(**init).eval()(x.clone()))
    assert not torch.allclose(other(x.clone()), module(x.clone()))


class Asking(nn.Module):
    """Forward asks whether a weight is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2 if self.weight.requires_grad else x) * self.weight + self._shift()

    def _shift(self) -> torch.Tensor:
        return self.bias


def test_a_weight_that_is_frozen_is_outside_where_forward_asks_for_that(tmp_path: Path) -> None:
    module = Asking().eval()
    candidate = synthesize(module, capture(module, (Y,)), class_name="Asking", import_from=__name__)[0]
    kernel = load(candidate.source, tmp_path / "asking_triton.py").AskingTriton().eval()
    with torch.no_grad():
        assert kernel._in_envelope(Y)
        kernel.bias.requires_grad_(False)
        assert kernel._in_envelope(Y)
        kernel.weight.requires_grad_(False)
        assert torch.equal(kernel(Y), Asking.forward(kernel, Y))

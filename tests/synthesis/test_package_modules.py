"""Outside what was validated the generated class runs the eager forward: real files, called for real."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


class Scaled(nn.Module):
    """Forward reads a number, a function, a child's setting and an optional argument."""

    def __init__(self, eps: float = 1e-5, activation: Callable[..., Any] = torch.tanh) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16, eps=eps)
        self.activation = activation
        self.scale = 2.0

    def forward(self, x: torch.Tensor, shift: float = 0.5) -> torch.Tensor:
        return self.activation(self.norm(x)) * self.scale + shift


class Marked(torch.Tensor):
    """A subclass may compute anything; the kernel knows nothing of it."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The generated module. Its kernels would run under the interpreter; nothing here may reach them."""
    module = Scaled().eval()
    (candidate, *_) = synthesize(
        module, capture(module, (torch.randn(4, 16),)), class_name="Scaled", import_from=__name__
    )
    path = tmp_path_factory.mktemp("generated") / "scaled_triton.py"
    path.write_text(candidate.source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec = importlib.util.spec_from_file_location("scaled_triton", path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    assert loaded._DEVICE == "cpu"
    return loaded


def frozen(kind: Any, **init: Any) -> Any:
    module = kind(**init).eval()
    return module.requires_grad_(False)


def test_the_case_it_was_made_for_is_inside(generated: Any) -> None:
    kernel = frozen(generated.ScaledTriton)
    assert kernel._in_envelope(torch.randn(4, 16))
    assert kernel._in_envelope(torch.randn(9, 16))
    with torch.no_grad():
        assert generated.ScaledTriton().eval()._in_envelope(torch.randn(4, 16))


X = torch.randn(4, 16)
OUTSIDE: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "another eps": (lambda kind: frozen(kind, eps=0.5), (X,)),
    "another function": (lambda kind: frozen(kind, activation=torch.sigmoid), (X,)),
    "another width": (lambda kind: frozen(kind), (torch.randn(4, 5, 16),)),
    "another dtype": (lambda kind: frozen(kind).double(), (X.double(),)),
    "no element": (lambda kind: frozen(kind), (torch.randn(0, 16),)),
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


def test_under_autocast_eager_runs(generated: Any) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert not frozen(generated.ScaledTriton)._in_envelope(X)

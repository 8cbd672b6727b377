"""What forward reads of objects that a module holds is asked for: constructed otherwise, or changed later, eager runs. Real files, called for real."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

X = torch.randn(3, 8)


@dataclass
class Norm:
    eps: float = 1e-5
    name: str = "rms"


@dataclass
class Config:
    depth: int = 3
    norm: Norm = field(default_factory=Norm)


class Nested(nn.Module):
    """A setting in a config inside a config."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self.config = config or Config()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config.norm.eps)


class Schedule:
    """A helper that is no module."""

    def __init__(self, beta: float) -> None:
        self.beta, self.inner = beta, SimpleNamespace(gamma=3.0)

    def weight(self, x: torch.Tensor) -> torch.Tensor:
        return self._scaled(x) + self.inner.gamma

    def _scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.beta


class Helped(nn.Module):
    """What a method of a helper reads."""

    def __init__(self, beta: float = 2.0) -> None:
        super().__init__()
        self.schedule = Schedule(beta)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.schedule.weight(x)


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by


class Called(nn.Module):
    """A helper that is called, one in a list, and one in a dictionary."""

    def __init__(self, by: float = 2.0, also: float = 3.0, last: float = 4.0) -> None:
        super().__init__()
        self.scale, self.more, self.named = Scale(by), [Scale(also)], {"last": SimpleNamespace(shift=last)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.more[0](self.scale(x)) + self.named["last"].shift


class Closed(nn.Module):
    """A function made by the constructor."""

    def __init__(self, power: float = 2.0, function: Callable[..., Any] = torch.relu) -> None:
        super().__init__()

        def made(x: torch.Tensor, shift: float = power + 1) -> torch.Tensor:
            return function(x) * power + shift

        self.made = made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.made(x)


def kernel(kind: Any, folder: Path) -> Any:
    """The generated class."""
    module = kind().eval()
    name = kind.__name__
    candidate = synthesize(module, capture(module, (X,)), class_name=name, import_from=__name__)[0]
    path = folder / f"{name.lower()}_triton.py"
    path.write_text(candidate.source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    return getattr(loaded, f"{name}Triton")


@pytest.mark.parametrize(
    ("kind", "otherwise"),
    [
        (Nested, [{"config": Config(norm=Norm(eps=0.5))}]),
        (Helped, [{"beta": 3.0}]),
        (Called, [{"by": 5.0}, {"also": 5.0}, {"last": 5.0}]),
        (Closed, [{"power": 3.0}, {"function": torch.tanh}]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_constructed_with_another_setting_eager_runs(
    kind: Any, otherwise: list[dict[str, Any]], tmp_path: Path
) -> None:
    made = kernel(kind, tmp_path)
    assert made().eval()._in_envelope(X)
    for init in otherwise:
        assert not made(**init).eval()._in_envelope(X)
        assert torch.equal(made(**init)(X), kind(**init)(X))


def test_what_forward_does_not_read_does_not_matter(tmp_path: Path) -> None:
    made = kernel(Nested, tmp_path)
    assert made(Config(depth=7, norm=Norm(name="other")))._in_envelope(X)


class Listed(nn.Module):
    """A function with a list that is too long to be compared at every call, of which forward takes one entry."""

    def __init__(self) -> None:
        super().__init__()
        numbers = [float(i) for i in range(5000)]
        self.made = lambda x: x * numbers[3]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.made(x)


def test_what_is_too_long_to_be_compared_does_not_keep_a_module_from_its_kernel(tmp_path: Path) -> None:
    assert kernel(Listed, tmp_path)()._in_envelope(X)


class Paired(nn.Module):
    """Layers and a weight that lie in a list, too, which is what forward reads."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.gain = nn.Parameter(torch.ones(8))
        self.steps = [(layer, 0.5, self.gain) for layer in self.layers]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, weight, gain in self.steps:
            x = x + layer(x) * weight * gain
        return x


def test_a_layer_that_is_replaced_in_one_of_two_places_is_noticed(tmp_path: Path) -> None:
    made = kernel(Paired, tmp_path)
    paired = made().eval().requires_grad_(False)
    assert paired._in_envelope(X) and copy.deepcopy(paired)._in_envelope(X)
    paired.layers[1] = nn.Linear(8, 8).requires_grad_(False)
    assert torch.equal(paired(X), Paired.forward(paired, X))
    paired = made().eval().requires_grad_(False)
    paired.gain = nn.Parameter(torch.zeros(8), requires_grad=False)
    assert torch.equal(paired(X), Paired.forward(paired, X))


def test_what_is_changed_later_is_noticed(tmp_path: Path) -> None:
    helped = kernel(Helped, tmp_path)()
    helped.schedule.inner.gamma = 4.0
    assert torch.equal(helped(X), X * 2 + 4)


class Statistics:
    def __init__(self, scale: float) -> None:
        self.scale, self.calls, self.total = scale, 0, 0

    def count(self) -> None:
        self.calls += 1


class Counted(nn.Module):
    """A helper that counts calls, which nothing reads, and has a setting."""

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.statistics = Statistics(scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.statistics.count()
        self.statistics.total += 2
        return torch.relu(x) * self.statistics.scale


def test_what_a_helper_counts_does_not_matter(tmp_path: Path) -> None:
    made = kernel(Counted, tmp_path)
    counted = made().eval()
    Counted.forward(counted, X)
    assert counted.statistics.calls == 1 and counted._in_envelope(X)
    assert not made(scale=3.0)._in_envelope(X)


class Optional(nn.Module):
    """Helpers in a list and in a dictionary, of which there may be none."""

    def __init__(self, more: bool = True, named: bool = True) -> None:
        super().__init__()
        self.more = [Scale(2.0)] if more else None
        self.named = {"last": Scale(3.0)} if named else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.more is not None:
            x = self.more[0](x)
        return x if self.named is None else self.named["last"](x)


@pytest.mark.parametrize("without", ["more", "named"])
def test_without_a_list_or_dictionary_eager_runs(without: str, tmp_path: Path) -> None:
    made = kernel(Optional, tmp_path)
    assert made()._in_envelope(X)
    assert torch.equal(made(**{without: False})(X), Optional(**{without: False})(X))

"""Recurrent layers on a CUDA GPU: several programs that wait for each other, at sizes where they do.

Every schedule of a layer is compiled and run; the results are compared with the layer in float64.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

pytestmark = pytest.mark.gpu


def candidates(layer: nn.Module, x: torch.Tensor) -> list[Candidate]:
    exported = capture(layer, (x,))
    name = torch.cuda.get_device_name()
    made = synthesize(layer, exported, class_name="Layer", import_from="recurrent_layers", gpu=name)
    assert not made[0].kept or len(made) > 1
    return [one for one in made if not one.kept]


def written(layer: nn.Module, candidate: Candidate, folder: Path, number: int) -> Any:
    """The candidate's class with the layer's parameters, on the GPU."""
    path = folder / f"layer_{number}.py"
    path.write_text(candidate.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.LayerTriton.__new__(module.LayerTriton)
    kernel.__dict__ = layer.__dict__.copy()
    return kernel


def named(layer: nn.Module) -> nn.Module:
    """The layer as a class that a generated file can import."""
    kind = type("Layer", (type(layer),), {"__module__": "recurrent_layers"})
    sys.modules["recurrent_layers"] = types.ModuleType("recurrent_layers")
    sys.modules["recurrent_layers"].Layer = kind  # type: ignore[attr-defined]
    layer.__class__ = kind
    return layer.eval()


def error(results: Any, exact: Any) -> float:
    """The largest difference relative to the mean magnitude and the number's own, as a validation has it."""
    worst = 0.0
    for result, expected in zip(pytree.tree_leaves(results), pytree.tree_leaves(exact), strict=True):
        assert result.shape == expected.shape
        weight = expected.abs() + expected.abs().mean()
        worst = max(worst, ((result.double() - expected).abs() / weight).max().item())
    return worst


CASES = {
    "lstm": (lambda: nn.LSTM(64, 256), (100, 10, 64)),
    "lstm alone": (lambda: nn.LSTM(32, 64), (100, 70, 32)),
    "lstm of odd sizes": (lambda: nn.LSTM(33, 100), (37, 37, 33)),
    "lstm of many rows": (lambda: nn.LSTM(64, 256, batch_first=True), (100, 50, 64)),
    "lstm stack": (lambda: nn.LSTM(128, 256, 6, batch_first=True), (10, 512, 128)),
    "lstm stack of odd sizes": (lambda: nn.LSTM(30, 70, 3), (33, 21, 30)),
    "lstm in two directions": (lambda: nn.LSTM(64, 256, 2, bidirectional=True), (60, 10, 64)),
    "gru stack": (lambda: nn.GRU(128, 256, 6), (200, 10, 128)),
    "gru in two directions": (lambda: nn.GRU(128, 256, 3, bidirectional=True), (100, 10, 128)),
    "rnn stack": (lambda: nn.RNN(64, 256, 2), (200, 8, 64)),
    "rnn stack of few units": (lambda: nn.RNN(6, 40, 2, nonlinearity="relu"), (5, 18, 6)),
    "rnn stack of 64 units": (lambda: nn.RNN(6, 64, 3), (7, 18, 6)),
    "lstm stack of few units": (lambda: nn.LSTM(6, 16, 2), (5, 18, 6)),
    "lstm stack of 64 units": (lambda: nn.LSTM(6, 64, 2), (5, 18, 6)),
    "rnn with relu": (lambda: nn.RNN(64, 128, nonlinearity="relu"), (50, 8, 64)),
    "one step": (lambda: nn.GRU(64, 256, 2), (1, 10, 64)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_every_schedule_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    make, shape = CASES[name]
    layer, x = named(make().cuda()), torch.randn(shape, device="cuda")
    with torch.no_grad():
        exact = make_double(layer)(x.double())
        eager = error(layer(x), exact)
        errors = {}
        for number, candidate in enumerate(candidates(layer, x)):
            kernel = written(layer, candidate, tmp_path, number)
            assert kernel._in_envelope(x)
            first = kernel(x)
            errors[candidate.variant or "default"] = error(first, exact)
            for _ in range(5):  # the counters begin at zero in each call; the order of programs is another
                again = kernel(x)
                assert all(map(torch.equal, pytree.tree_leaves(first), pytree.tree_leaves(again)))
    print(name, "eager", eager, errors)
    assert max(errors.values()) <= max(3 * eager, 1e-5), errors


def make_double(layer: nn.Module) -> nn.Module:
    kind = type(layer).__mro__[1]
    exact = kind(
        layer.input_size,
        layer.hidden_size,
        layer.num_layers,
        batch_first=layer.batch_first,
        bidirectional=layer.bidirectional,
        **({"nonlinearity": layer.nonlinearity} if kind is nn.RNN else {}),
    )
    exact.load_state_dict(layer.state_dict())
    return exact.double().to("cuda").eval()


def test_half_precision(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = named(nn.LSTM(64, 256, 2).cuda().half())
    x = torch.randn(100, 10, 64, device="cuda", dtype=torch.float16)
    with torch.no_grad():
        exact = make_double(layer)(x.double())
        for number, candidate in enumerate(candidates(layer, x)):
            assert error(written(layer, candidate, tmp_path, number)(x), exact) <= 2e-3 + 3 * error(layer(x), exact)


def test_a_stack_takes_less_time_than_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer, x = named(nn.LSTM(128, 256, 6, batch_first=True).cuda()), torch.randn(10, 512, 128, device="cuda")

    def seconds(function: Any) -> float:
        for _ in range(3):
            function(x)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(10):
            function(x)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e4

    with torch.no_grad():
        times = {
            candidate.variant or "default": seconds(written(layer, candidate, tmp_path, number))
            for number, candidate in enumerate(candidates(layer, x))
        }
        eager = seconds(layer)
    print("eager", eager, times)
    assert min(times.values()) < eager / 2, (eager, times)
    assert min(times, key=times.__getitem__).startswith("recurrences in one launch"), times

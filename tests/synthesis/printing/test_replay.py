"""The replay of a host plan, as far as it can be run without a GPU: which plans have one, what is written, what it does on a CPU."""

from __future__ import annotations

import ast
import dataclasses
import logging
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

from tests.synthesis import interpreted
from tests.synthesis.printing.replay_modules import (
    LEFT,
    MODULES,
    REPLAYED,
    Inverted,
    Perceptron,
    Residual,
    candidates,
    loaded,
    variant,
)


def written(kind: type[nn.Module], *shapes: tuple[int, ...], **how: bool) -> list[str]:
    """The labels of the candidates for a module in eval mode."""
    return [one.variant for one in candidates(kind().eval(), [torch.randn(shape) for shape in shapes], **how)]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_many_launches_has_a_candidate_that_replays_them(name: str) -> None:
    kind, shapes = MODULES[name]
    module = kind().eval()
    made = candidates(module, [torch.randn(shape) for shape in shapes])
    direct, replayed = variant(made, ""), variant(made, REPLAYED)
    assert made.index(replayed) == made.index(direct) + 1
    assert "graph" not in direct.source.lower() and "logging" not in direct.source
    assert replayed.kept == direct.kept
    # Of the direct file, all but the docstring, the imports and forward's last line is in the other as it is.
    first, second = (source.source.split("\n@triton.jit\n", 1)[1] for source in (direct, replayed))
    host = first.split("\nclass ", 1)[0]
    assert second.startswith(host)


def test_convolutions_left_to_torch_are_replayed_too() -> None:
    made = candidates(Residual().eval(), [torch.randn(2, 16, 8, 8)])
    labels = [one.variant for one in made]
    assert labels[:4] == ["convolutions left to torch", LEFT, "", REPLAYED]
    assert "_settings()" in variant(made, LEFT).source, "torch's operators go by torch's settings"
    assert "_settings()" not in variant(made, REPLAYED).source


class Few(nn.Module):
    """One kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, -1)


class Large(nn.Module):
    """Two kernels that take longer than their launches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1) @ x.mT


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x + torch.rand_like(x)


class GivesBack(nn.Module):
    """One result is what it was given, which a caller may rely on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x
        for layer in self.layers:
            y = torch.relu(layer(y))
        return y, x


class Shares(GivesBack):
    """Two results in one memory."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x
        for layer in self.layers:
            y = torch.relu(layer(y))
        return y, y


class Embeds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 32)
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        x = self.table(places)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Keeps(nn.Module):
    """A tensor of the module's own that is no buffer, which each call adds to."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.sum = torch.zeros(4, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        self.sum += x
        return x


def test_buffers_that_change_are_replayed_and_nothing_else_that_does() -> None:
    source = variant(candidates(Residual().train(), [torch.randn(2, 16, 8, 8)]), REPLAYED).source
    calls = [ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert "torch.autograd.graph.increment_version([held[i] for i in changed])" in calls, "num_batches_tracked counts"
    still = variant(candidates(Residual().eval(), [torch.randn(2, 16, 8, 8)]), REPLAYED).source
    assert "increment_version" not in still
    assert REPLAYED not in written(Keeps, (4, 32))


@dataclass
class Output:
    last: torch.Tensor
    first: torch.Tensor
    kind: str = "both"


@dataclass
class DictOutput(OrderedDict[str, torch.Tensor]):
    """As transformers' ModelOutput is."""

    last: torch.Tensor | None = None
    first: torch.Tensor | None = None
    loss: torch.Tensor | None = None

    def __post_init__(self) -> None:
        self.update({name: value for name, value in vars(self).items() if value is not None})


class ReturnsDataclasses(Perceptron):
    def forward(self, x: torch.Tensor) -> Any:
        first = torch.sin(x)
        last = super().forward(first)
        return Output(last, first), [DictOutput(last + 1, first + 1)]


def test_dataclasses_of_a_replay_get_tensors_of_the_callers_own() -> None:
    source = variant(candidates(ReturnsDataclasses(32).eval(), [torch.randn(4, 32)]), REPLAYED).source
    text = source.split("def _copied", 1)[1].split("\n\n", 1)[0]
    space: dict[str, Any] = {"torch": torch, "dataclasses": dataclasses}
    exec(f"def _copied{text}", space)
    x = torch.ones(2)
    given = Output(x, x + 1), [DictOutput(x + 2, x + 3)]
    got = space["_copied"](given)
    assert "import dataclasses\n" in source
    assert repr(got) == repr(given) and [type(got[0]), type(got[1][0])] == [Output, DictOutput]
    assert [*got[1][0]] == ["last", "first"] and got[1][0]["last"] is got[1][0].last
    assert got[0].last is not x and got[1][0].last is not given[1][0].last
    assert "dataclasses" not in variant(candidates(Perceptron().eval(), [torch.randn(1, 64)]), REPLAYED).source


def test_a_replay_begins_before_the_check_where_there_is_much_to_check_and_nothing_to_change() -> None:
    def first(module: nn.Module, x: torch.Tensor) -> str:
        tree = ast.parse(variant(candidates(module, [x]), REPLAYED).source)
        (forward,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
        return ast.unparse(forward.body[0])

    image = torch.randn(2, 16, 8, 8)
    assert first(Perceptron().eval(), torch.randn(3, 64)) == "begun = _begin(self, (x,))"
    assert first(Residual().eval(), image) == "begun = _begin(self, (x,))"
    assert "_begin" not in first(Residual().train(), image), "it would change the running statistics"
    assert "_begin" not in first(Embeds().eval(), torch.randint(0, 100, (4,))), "nine tensors are looked at in no time"


def test_what_a_graph_cannot_give_has_no_such_candidate() -> None:
    assert REPLAYED not in written(Few, (64, 64))
    assert REPLAYED not in written(Large, (64, 1024, 2048))
    assert REPLAYED not in written(Random, (4, 32))
    assert REPLAYED not in written(GivesBack, (4, 32))
    assert REPLAYED not in written(Shares, (4, 32))
    places = [torch.randint(0, 100, (4,))]
    assert REPLAYED in [one.variant for one in candidates(Embeds().eval(), places)]
    checked = [one.variant for one in candidates(Embeds().eval(), places, check_indices=True)]
    assert REPLAYED not in checked, "indices are looked at on the host"
    # Nothing says of this operator that it waits: the file finds out, and launches directly.
    assert REPLAYED in written(Inverted, (3, 16, 16))


def test_the_file_depends_on_torch_and_triton_alone() -> None:
    source = variant(candidates(Perceptron().eval(), [torch.randn(3, 64)]), REPLAYED).source
    tree = ast.parse(source)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"logging", "operator", "weakref", "torch", "triton", "triton.language"}
    assert 'getLogger("kernel_lsp.Perceptron")' in source


def test_why_a_call_is_not_replayed_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a stand-in for CUDA, whose graphs can be captured until ``refused``."""
    source = variant(candidates(Perceptron().eval(), [torch.randn(3, 64)]), REPLAYED).source
    file = loaded(source, tmp_path, "told_triton")
    module, on_gpu, held = nn.Identity(), torch.device("cuda", 0), (torch.zeros(2),)
    x, other, third = (torch.zeros(size) for size in (3, 4, 5))

    def told(given: torch.Tensor) -> str | None:
        return file._why_direct(module, (SimpleNamespace(device=on_gpu, shape=given.shape),), held)  # type: ignore[no-any-return]

    def run(given: torch.Tensor) -> None:
        file._graphs[module][on_gpu][0].run(lambda *tensors: tensors[0] + 1, (given,), held)

    with mock.patch.object(torch, "cuda") as cuda, caplog.at_level(logging.INFO, "kernel_lsp.Perceptron"):
        cuda.is_current_stream_capturing.return_value = False
        assert told(x) == file._NOT_YET
        file._graphs[module] = {on_gpu: [file._Graphs()]}
        assert told(x) == file._NOT_YET
        run(x)
        assert told(x) is None and told(other) == file._NOT_YET
        cuda.is_current_stream_capturing.return_value = True
        assert "the caller captures a CUDA graph" in str(told(x))
        cuda.is_current_stream_capturing.return_value = False
        (graphs,) = file._graphs[module].pop(on_gpu)
        file._graphs[module][on_gpu] = []
        assert told(x) == "another thread is using the graphs"
        file._graphs[module][on_gpu] = [graphs]
        with mock.patch.object(torch, "empty", side_effect=torch.OutOfMemoryError):
            run(other)
        assert told(other) == "there was no memory for copies of the inputs"
        run(other)
        assert told(other) is None and told(third) == file._NOT_YET
        cuda.CUDAGraph.return_value.capture_end.side_effect = RuntimeError("operation not permitted")
        run(third)
        failed = "launches directly from now on, since a capture failed: operation not permitted"
        assert told(third) == failed and told(x) is None
        cuda.CUDAGraph.return_value.capture_end.side_effect = None
        file._graphs[module][on_gpu] = [file._Graphs()]
        for size in range(1, 65):
            run(torch.zeros(size))
        many = "no more graphs after 64, since sizes or weights change that often"
        assert told(torch.zeros(65)) == many and told(torch.zeros(64)) is None
    assert [one.getMessage() for one in caplog.records if one.name == "kernel_lsp.Perceptron"] == [failed, many]


#: What a program does with a kernel file on a CPU, where every call launches directly (Triton's interpreter)
PROGRAM = """
import copy, io, os, pickle, sys
import torch
from tests.synthesis.printing.replay_modules import MODULES, REPLAYED, made
from kernel_lsp.validation.interpreter import repair
from pathlib import Path

repair()
torch.set_num_threads(1)  # a pool of threads does not survive a fork

def run(name, folder):
    module, kernel, file, shapes = made(name, REPLAYED, folder)
    inputs = [torch.randn(shape) for shape in shapes]

    def same(one, other):
        torch.testing.assert_close(one(*inputs), other(*inputs), atol=1e-4, rtol=1e-4)

    assert kernel._in_envelope(*inputs)
    same(kernel, module)
    with torch.inference_mode():
        same(kernel, module)
    assert not file._graphs, "no graph for tensors of the CPU"
    assert kernel.why_not(*inputs) is None
    assert kernel.why_not_replayed(*inputs) == "CUDA graphs are for tensors on a GPU, and these are on cpu"
    other = [x.double() for x in inputs]
    assert kernel.why_not_replayed(*other) == f"runs eagerly: {kernel.why_not(*other)}"
    same(copy.deepcopy(kernel), module)
    assert vars(kernel).keys() == vars(module).keys()
    again = pickle.loads(pickle.dumps(kernel))
    same(again, module)
    saved = io.BytesIO()
    torch.save(kernel.state_dict(), saved)
    child = os.fork()
    if not child:
        same(kernel, module)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

with torch.no_grad():
    for name in sys.argv[2:]:
        run(name, Path(sys.argv[1]))
        print(name, "done")
"""


def test_on_a_cpu_it_launches_directly_and_is_copied_and_saved_as_any_module(tmp_path: Path) -> None:
    said = interpreted.printed(PROGRAM, str(tmp_path), "perceptron", "several")
    assert said.endswith("perceptron done\nseveral done\n")

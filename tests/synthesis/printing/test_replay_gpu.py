"""Replays on a real GPU: what a caller sees is what the module gives, whatever happens between calls."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from kernel_lsp import why_eager
from tests.synthesis.printing.replay_modules import (
    LEFT,
    MODULES,
    REPLAYED,
    Inverted,
    Perceptron,
    Residual,
    candidates,
    loaded,
    made,
    variant,
)

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

CASES = [*((name, REPLAYED) for name in MODULES), ("residual", LEFT)]


class Pair:
    """A module and its kernel on the GPU, with equal weights that are not the same tensors."""

    def __init__(self, name: str, label: str, folder: Path) -> None:
        self.module, self.kernel, self.file, self.shapes = made(name, label, folder)
        self.module.cuda()
        self.kernel.cuda()

    def inputs(self, batch: int | None = None) -> list[torch.Tensor]:
        return [torch.randn(batch or shape[0], *shape[1:], device="cuda") for shape in self.shapes]

    def check(self, inputs: list[torch.Tensor], out: Any = None) -> None:
        same(self.kernel(*inputs) if out is None else out, self.module(*inputs))

    def graphs(self, kernel: nn.Module | None = None) -> Any:
        return graphs(self.file, kernel if kernel is not None else self.kernel)


def graphs(file: ModuleType, kernel: nn.Module) -> Any:
    """The file's own account of what it has captured."""
    ((found,),) = file._graphs[kernel].values()
    return found


def same(mine: Any, theirs: Any) -> None:
    """Structures, dtypes and values; cuDNN may compute eager's convolutions in TF32, so its own error is what counts there."""
    torch.testing.assert_close(mine, theirs, atol=5e-3, rtol=5e-3)


def training(folder: Path) -> tuple[nn.Module, nn.Module, ModuleType]:
    """A module with batch norms in training mode, its kernel with equal weights, both on the GPU, and the kernel file."""
    torch.manual_seed(0)
    module = Residual().train()
    source = variant(candidates(module, [torch.randn(2, 16, 8, 8)]), REPLAYED).source
    file = loaded(source, folder, "residual_train_triton")
    kernel = file.ResidualTriton().train()
    kernel.load_state_dict(module.state_dict())
    return module.cuda(), kernel.cuda(), file


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair("perceptron", REPLAYED, tmp_path)


@pytest.mark.parametrize(("name", "label"), CASES)
def test_new_values_each_call_other_shapes_and_results_that_are_kept(name: str, label: str, tmp_path: Path) -> None:
    pair = Pair(name, label, tmp_path)
    kept = []
    for batch in (None, None, 5, None, 1, 5, 4):
        inputs = pair.inputs(batch)
        kept.append((inputs, pair.kernel(*inputs)))
    for inputs, out in kept:
        pair.check(inputs, out)
    assert pair.graphs().captures == 4, "a graph for each set of sizes, and no other"
    outputs = [t for _, out in kept for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
    assert len({t.untyped_storage().data_ptr() for t in outputs}) == len(outputs)


@pytest.mark.parametrize(("name", "label"), CASES)
def test_the_graph_gives_what_the_launches_give(name: str, label: str, tmp_path: Path) -> None:
    """Over many calls, with a wait before each and without one."""
    pair = Pair(name, label, tmp_path)
    inputs = [pair.inputs() for _ in range(20)]
    direct = []
    for one in inputs:
        pair.file._MOST_CAPTURES, before = 0, pair.file._MOST_CAPTURES
        pair.file._graphs.clear()
        direct.append(pair.kernel(*one))
        pair.file._MOST_CAPTURES = before
    pair.file._graphs.clear()
    for waits in (True, False):
        for one, expected in zip(inputs, direct, strict=True):
            if waits:
                torch.cuda.synchronize()
            torch.testing.assert_close(pair.kernel(*one), expected, atol=1e-6, rtol=1e-6)
    assert pair.graphs().captures == 1


def test_inputs_of_other_strides_and_expanded_ones(tmp_path: Path) -> None:
    pair = Pair("several", REPLAYED, tmp_path)
    x, memory = pair.inputs()
    pair.check([x, memory])
    pair.check([x.mT.contiguous().mT, memory[:1].expand(2, -1, -1)])
    offset = torch.randn(x.numel() + 1, device="cuda")[1:].view(x.shape)  # not aligned to 16 bytes
    pair.check([offset, memory])
    assert pair.graphs().captures == 1


def test_parameters_that_change_in_place_are_seen_and_replaced_ones_too(pair: Pair) -> None:
    inputs = pair.inputs()
    pair.check(inputs)
    for parameter in (*pair.module.parameters(), *pair.kernel.parameters()):
        parameter.mul_(0.9)
    pair.check(inputs)
    assert pair.graphs().captures == 1, "in place: the graph reads them where they lie"
    other = Perceptron().cuda().eval()
    for one in (pair.module, pair.kernel):
        one.load_state_dict(other.state_dict())
    pair.check(inputs)
    assert pair.graphs().captures == 1
    weight, bias = torch.randn(64, 64, device="cuda") / 8, torch.randn(64, device="cuda")
    for one in (pair.module, pair.kernel):
        one.layers[3].weight = nn.Parameter(weight.clone(), requires_grad=False)
        one.layers[5].bias.data = bias.clone()
    pair.check(inputs)
    assert pair.graphs().captures == 2
    for one in (pair.module, pair.kernel):  # the same memory, read in another order
        one.layers[3].weight.data = one.layers[3].weight.data.mT
    pair.check(inputs)
    for one in (pair.module, pair.kernel):
        one.load_state_dict({k: v.clone() for k, v in other.state_dict().items()}, assign=True)
    pair.check(inputs)


def test_buffers_change_once_in_each_call(tmp_path: Path) -> None:
    """In training mode, over calls that launch, capture and replay: running statistics, their counts and versions."""
    module, kernel, file = training(tmp_path)
    count = kernel.norms[0].num_batches_tracked
    for batch in (2, 2, 5, 2, 5, 5):
        x = torch.randn(batch, 16, 8, 8, device="cuda")
        version = count._version
        same(kernel(x), module(x))
        same(dict(kernel.named_buffers()), dict(module.named_buffers()))
        assert count._version > version
    assert count.item() == 6 and graphs(file, kernel).captures == 2


def test_buffers_of_inference_mode_change_once_too(tmp_path: Path) -> None:
    """Nothing outside of inference mode may write to them, as a capture would."""
    module, kernel, _ = training(tmp_path)
    with torch.inference_mode():
        module, kernel = copy.deepcopy(module), copy.deepcopy(kernel)  # their tensors are inference tensors
        assert kernel.norms[0].num_batches_tracked.is_inference()
        for _ in range(3):
            x = torch.randn(2, 16, 8, 8, device="cuda")
            same(kernel(x), module(x))
            same(dict(kernel.named_buffers()), dict(module.named_buffers()))
    assert kernel.norms[0].num_batches_tracked.item() == 3


def test_a_graph_in_constant_use_stays(pair: Pair) -> None:
    for batch in range(2, 12):
        pair.check(pair.inputs(1))
        pair.check(pair.inputs(batch))
    assert pair.graphs().captures == 11, "one for each batch"


def test_modes_in_turn(pair: Pair) -> None:
    inputs = pair.inputs()
    with torch.inference_mode():
        pair.check(inputs)  # captured here ...
        assert pair.kernel(*inputs).is_inference()
    pair.check(inputs)  # ... and used elsewhere
    with torch.inference_mode():
        made_here = pair.inputs()
        pair.check(made_here)
    pair.check(made_here)
    with torch.enable_grad():
        x = inputs[0].clone().requires_grad_()
        out = pair.kernel(x)
        assert out.requires_grad, "gradients are eager's"
        out.sum().backward()
        assert x.grad is not None and bool(x.grad.abs().sum() > 0)
        for parameter in (*pair.module.parameters(), *pair.kernel.parameters()):
            parameter.requires_grad_(False)
        assert not pair.kernel(*inputs).requires_grad
        pair.check(inputs)
    assert pair.graphs().captures == 1


def test_at_most_so_many_graphs_and_the_longest_unused_goes(pair: Pair) -> None:
    for batch in range(1, 13):
        inputs = pair.inputs(batch)
        pair.check(inputs)
    found = pair.graphs()
    assert [signature[0][0] for signature in found.captured] == list(range(5, 13))
    pair.check(pair.inputs(5))
    pair.check(pair.inputs(20))
    assert 5 in [signature[0][0] for signature in found.captured], "used again, so not the one that goes"
    assert 6 not in [signature[0][0] for signature in found.captured]


def test_a_thousand_shapes_leave_no_memory_behind(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kernel_lsp.Perceptron")

    def taken() -> int:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    pair.check(pair.inputs(1))
    base, seen = taken(), []
    for batch in range(1, 1001):
        inputs = pair.inputs(batch)
        out = pair.kernel(*inputs)
        if batch % 50 == 0:
            pair.check(inputs, out)
            del out, inputs
            seen.append(taken())
    assert pair.graphs().captures == 64 and len(pair.graphs().captured) == 8
    assert max(seen[2:]) <= seen[1] + (8 << 20), "after the last capture nothing more is held"
    assert max(seen) < base + (64 << 20)
    limit = [record.getMessage() for record in caplog.records]
    assert len(limit) == 1 and "64" in limit[0]
    module = pair.kernel
    pair.kernel = nn.Identity()
    before = taken()
    del module
    assert taken() < before and len(pair.file._graphs) == 0, "with the module its graphs go"


def test_callers_that_change_streams(pair: Pair) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    pair.check(pair.inputs())
    torch.cuda.synchronize()
    kept = []
    for step in range(60):
        with torch.cuda.stream(streams[step % 3]):
            inputs = pair.inputs()
            if step % 4 == 0:
                torch.cuda._sleep(
                    2_000_000
                )  # this one's work is late; the next one's must not overtake it in the graph
            kept.append((inputs, pair.kernel(*inputs)))
    torch.cuda.synchronize()
    for inputs, out in kept:
        pair.check(inputs, out)
    assert pair.graphs().captures == 1


def test_a_replay_that_began_counts_only_where_the_check_agrees(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []
    begin = pair.file._begin

    def counted(*args: Any) -> Any:
        begun.append((found := begin(*args)) is not None and found[1] is not None)
        return found

    monkeypatch.setattr(pair.file, "_begin", counted)
    inputs = pair.inputs()
    for _ in range(4):
        pair.check(pair.inputs())
    assert begun == [False, True, True, True], "the first call captures"
    old = pair.kernel.layers[0].weight  # so that the graph's memory stays what it was
    for module in (pair.module, pair.kernel):
        module.layers[0].weight = nn.Parameter(old * 2)
    pair.check(inputs)
    with torch.autocast("cuda", torch.bfloat16):
        assert pair.kernel(*inputs).dtype == torch.bfloat16
    pair.check(inputs)
    with pytest.raises(RuntimeError):
        pair.kernel(*[x.double() for x in inputs])
    with torch.enable_grad():
        assert pair.kernel(*inputs).requires_grad
    pair.check(inputs)
    pair.check(pair.inputs(5))
    pair.check(pair.inputs(5))
    assert begun[-2:] == [False, True]
    nested = torch.nested.nested_tensor([torch.randn(2, 64), torch.randn(1, 64)], device="cuda")
    assert pair.kernel(nested).is_nested
    x = torch.randn(64, 3, device="cuda").mT
    pair.check([x])
    pair.check([x[:1].expand(3, 64)])
    assert pair.graphs().captures == 3, "one for the weight before, one for the weight now, one for five rows"


@pytest.mark.parametrize("own_stream", [False, True])
def test_threads(pair: Pair, own_stream: bool) -> None:
    wrong: list[BaseException] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        try:
            generator = torch.Generator("cuda").manual_seed(seed)
            stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
            start.wait()
            with torch.no_grad(), torch.cuda.stream(stream):
                kept = []
                for step in range(100):
                    x = torch.randn(1 + (seed + step) % 3, 64, device="cuda", generator=generator)
                    kept.append((x, pair.kernel(x)))
                stream.synchronize()
                for x, out in kept:
                    same(out, pair.module(x))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


@pytest.mark.parametrize("captured_before", [False, True])
def test_inside_a_graph_of_the_caller(pair: Pair, captured_before: bool) -> None:
    (x,) = pair.inputs()
    if not captured_before:
        pair.file._MOST_CAPTURES = 0  # the kernels are compiled, and nothing is captured
    pair.check([x])
    pair.file._MOST_CAPTURES = 64
    if not captured_before:
        pair.file._graphs.clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = pair.kernel(x)
        told = pair.kernel.why_not_replayed(x)
    assert told == "the caller captures a CUDA graph, which takes the launches themselves"
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        pair.check([x], out)
    pair.check(pair.inputs())


def test_why_a_call_is_not_replayed_is_told(pair: Pair) -> None:
    (x,) = pair.inputs()
    not_yet = pair.file._NOT_YET
    assert pair.kernel.why_not(x) is None and pair.kernel.why_not_replayed(x) == not_yet
    pair.check([x])
    assert pair.kernel.why_not_replayed(x) is None and pair.kernel.why_not_replayed(x[:2]) == not_yet
    assert pair.kernel.why_not_replayed(x.double()) == f"runs eagerly: {pair.kernel.why_not(x.double())}"
    pair.check([x])
    old = pair.kernel.layers[0].weight  # so that its memory is not used again
    pair.kernel.layers[0].weight = nn.Parameter(old.clone())
    assert pair.kernel.why_not_replayed(x) == not_yet
    assert pair.graphs().captures == 1, "asking captures nothing"
    with torch.enable_grad():
        assert "runs eagerly: gradients are required" in pair.kernel.why_not_replayed(x)
    for batch in range(1, 70):
        pair.kernel(*pair.inputs(batch))
    assert pair.kernel.why_not_replayed(*pair.inputs(100)).startswith("no more graphs after 64")


def test_copies_and_pickles_have_no_graphs_and_weights_of_their_own(pair: Pair) -> None:
    inputs = pair.inputs()
    pair.check(inputs)
    other = copy.deepcopy(pair.kernel)
    again = pickle.loads(pickle.dumps(pair.kernel.cpu())).cuda()
    pair.kernel.cuda()
    for one in (other, again):
        same(one(*inputs), pair.module(*inputs))
        with torch.no_grad():
            one.layers[0].weight.zero_()
        assert not torch.allclose(one(*inputs), pair.module(*inputs))
    pair.check(inputs)
    assert len(pair.file._graphs) == 3


def test_a_capture_that_fails_is_followed_by_launches_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kernel_lsp.Inverted")
    torch.manual_seed(0)
    module = Inverted().eval()
    source = variant(candidates(module, [torch.randn(3, 16, 16)]), REPLAYED).source
    file = loaded(why_eager.added(source, "Inverted"), tmp_path, "inverted_triton")
    kernel = file.InvertedTriton().eval()
    kernel.load_state_dict(module.state_dict())
    module.cuda()
    kernel.cuda()
    for batch in (3, 3, 4, 5, 3):
        x = torch.randn(batch, 16, 16, device="cuda")
        same(kernel(x), module(x))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1 and "capture failed" in said[0], said
    assert kernel.why_not_replayed(x) == said[0]
    assert not graphs(file, kernel).captured
    torch.cuda.synchronize()


def test_settings_of_torch_have_graphs_of_their_own(tmp_path: Path) -> None:
    pair = Pair("residual", LEFT, tmp_path)
    inputs = pair.inputs()
    before = torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = True
        fast = pair.kernel(*inputs)
        torch.backends.cudnn.allow_tf32 = False
        exact = pair.kernel(*inputs)
        expected = pair.module(*inputs)
    finally:
        torch.backends.cudnn.allow_tf32 = before
    torch.testing.assert_close(exact, expected, atol=2e-5, rtol=2e-5)
    assert pair.graphs().captures == 2
    same(fast, expected)


def test_under_torch_compile(pair: Pair) -> None:
    compiled: Callable[..., torch.Tensor] = torch.compile(pair.kernel)
    for _ in range(3):
        inputs = pair.inputs()
        pair.check(inputs, compiled(*inputs))


@pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_devices(pair: Pair) -> None:
    inputs = pair.inputs()
    pair.check(inputs)
    with torch.cuda.device(1):
        pair.kernel.to("cuda:1")
        pair.module.to("cuda:1")
        pair.check([x.to("cuda:1") for x in inputs])
    pair.kernel.to("cuda:0")
    pair.module.to("cuda:0")
    pair.check(inputs)
    assert len(pair.file._graphs[pair.kernel]) == 2

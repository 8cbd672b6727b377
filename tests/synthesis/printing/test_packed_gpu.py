"""Packed weights that are kept, on a real GPU: replays notice a weight that changed, streams and threads do not see what is unfinished."""

from __future__ import annotations

import copy
import gc
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.synthesis.printing.packed_modules import made

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


class Pair:
    """A module and its kernel on the GPU, with equal weights that are not the same tensors; how often weights were packed."""

    def __init__(self, name: str, folder: Path, replayed: bool) -> None:
        self.module, self.kernel, self.file, x = made(name, folder, replayed=replayed)
        self.module.cuda()
        self.kernel.cuda()
        self.shape = tuple(x.shape)
        self.packed = 0
        (packing,) = (one for one in vars(self.file) if one.endswith("_packed") and one != "_packed")
        pack = getattr(self.file, packing)

        def counted(*weights: torch.Tensor) -> Any:
            self.packed += 1
            return pack(*weights)

        setattr(self.file, packing, counted)

    def input(self, batch: int | None = None) -> torch.Tensor:
        return torch.randn(batch or self.shape[0], *self.shape[1:], device="cuda")

    def is_right(self, x: torch.Tensor | None = None, out: torch.Tensor | None = None) -> bool:
        x = self.input() if x is None else x
        out = self.kernel(x) if out is None else out
        return torch.allclose(out, self.module(x), atol=5e-3, rtol=5e-3)

    def both(self) -> tuple[nn.Module, nn.Module]:
        return self.module, self.kernel

    @property
    def graphs(self) -> Any:
        ((found,),) = self.file._graphs[self.kernel].values()
        return found


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.fixture(params=["launched", "replayed"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    return Pair("perceptron", tmp_path, request.param == "replayed")


@pytest.fixture
def replayed(tmp_path: Path) -> Pair:
    return Pair("perceptron", tmp_path, True)


def test_weights_are_packed_once(pair: Pair) -> None:
    for batch in (None, None, 5, None, 5, 1):
        assert pair.is_right(pair.input(batch))
    assert pair.packed == 1


def test_changes_in_place_and_replaced_parameters_are_noticed(pair: Pair) -> None:
    x = pair.input()
    assert pair.is_right(x) and pair.is_right(x)
    for one in pair.both():
        for parameter in one.parameters():
            parameter.mul_(0.9)
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 2
    other = type(pair.module)().cuda()
    for one in pair.both():
        one.load_state_dict(other.state_dict())
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 3
    weight = torch.randn(64, 64, device="cuda") / 8
    for one in pair.both():
        one.layers[3].weight = nn.Parameter(weight.clone())
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 4
    for one in pair.both():
        one.load_state_dict({name: t + 0.01 for name, t in other.state_dict().items()}, assign=True)
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 5
    for one in pair.both():
        one.cpu()
        one.layers[7].weight.mul_(2)
        one.cuda()
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 6


def test_the_graph_stays_where_a_weight_changes_in_place(replayed: Pair) -> None:
    """It reads what is packed where it lies: what is packed anew is written there."""
    x = replayed.input()
    assert replayed.is_right(x) and replayed.is_right(x)
    places = [t.data_ptr() for t in replayed.graphs.packed]
    for step in range(5):
        for one in replayed.both():
            one.layers[step].weight.add_(0.1)
        assert replayed.is_right(x)
        assert replayed.is_right(replayed.input(7))
    assert replayed.graphs.captures == 2
    assert [t.data_ptr() for t in replayed.graphs.packed] == places


def test_an_optimizer_in_turn_with_inference(pair: Pair) -> None:
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in pair.both()]
    for _ in range(4):
        x = pair.input()
        for one, optimizer in zip(pair.both(), optimizers, strict=True):
            optimizer.zero_grad()
            with torch.enable_grad():
                one(x).square().mean().backward()
            optimizer.step()
        assert pair.is_right(x) and pair.is_right()


def test_through_data_it_is_noticed_once_it_was_forgotten(pair: Pair) -> None:
    x = pair.input(128)  # of fewer than 64 rows the exact kernel computes the product, from the weight itself
    assert pair.is_right(x) and pair.is_right(x)
    for one in pair.both():
        one.layers[7].weight.data.mul_(3)
    assert not pair.is_right(x)
    pair.kernel.forget_packed_weights()  # type: ignore[operator]
    assert pair.is_right(x) and pair.is_right(x) and pair.packed == 2


def test_late_work_of_one_stream_is_not_overtaken_on_another(pair: Pair) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    assert pair.is_right()
    torch.cuda.synchronize()
    kept = []
    for step in range(45):
        stream = streams[step % 3]
        stream.wait_stream(streams[(step - 1) % 3])  # a weight is read and written in turn, as without kept weights
        with torch.cuda.stream(stream):
            if step % 5 == 0:
                torch.cuda._sleep(2_000_000)
                for one in pair.both():
                    one.layers[step % 8].weight.mul_(0.99)
            x = pair.input()
            kept.append((pair.kernel(x), pair.module(x)))
    torch.cuda.synchronize()
    for mine, theirs in kept:
        torch.testing.assert_close(mine, theirs, atol=5e-3, rtol=5e-3)


def test_streams_without_an_order_between_them(pair: Pair) -> None:
    """What one packs late another must not read before."""
    streams = [torch.cuda.Stream() for _ in range(6)]  # more than are kept
    assert pair.is_right()
    for one in pair.both():
        one.layers[7].weight.add_(0.1)
    torch.cuda.synchronize()
    kept = []
    for step in range(24):
        with torch.cuda.stream(streams[step % 6]):
            if step < 6:
                torch.cuda._sleep(10_000_000 if step == 0 else 1_000_000)
            x = pair.input()
            kept.append((x, pair.kernel(x)))
    torch.cuda.synchronize()
    assert all(pair.is_right(x, out) for x, out in kept)
    assert all(len(on_streams) <= pair.file._MOST_STREAMS for on_streams in pair.file._kept.values())


@pytest.mark.parametrize("own_stream", [False, True])
def test_threads(pair: Pair, own_stream: bool) -> None:
    wrong: list[BaseException] = []
    start = threading.Barrier(4)
    assert pair.is_right()
    torch.cuda.synchronize()

    # No thread may draw random numbers on a GPU while another captures a graph: torch raises an error.
    given = [torch.randn(1 + n % 3, 64, device="cuda") for n in range(6)]
    torch.cuda.synchronize()

    def work(seed: int) -> None:
        try:
            stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
            start.wait()
            with torch.no_grad(), torch.cuda.stream(stream):
                kept = []
                for step in range(60):
                    if step % 20 == 10 and not hasattr(pair.file, "_graphs"):
                        pair.kernel.forget_packed_weights()  # type: ignore[operator]
                    x = given[(seed + step) % 6]
                    kept.append((x, pair.kernel(x)))
                stream.synchronize()
                assert all(pair.is_right(x, out) for x, out in kept)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def test_inside_a_graph_of_the_caller_weights_are_packed_in_each_replay(pair: Pair) -> None:
    x = pair.input()
    assert pair.is_right(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = pair.kernel(x)
    for step in range(3):
        for one in pair.both():
            one.layers[step].weight.mul_(1.5)
        x.copy_(torch.randn_like(x))
        graph.replay()
        assert pair.is_right(x, out)
    assert pair.is_right(x)


def test_inference_tensors(pair: Pair) -> None:
    with torch.inference_mode():
        pair.module, pair.kernel = copy.deepcopy(pair.module), copy.deepcopy(pair.kernel)
        for _ in range(3):
            assert pair.is_right()
            for one in pair.both():
                one.layers[7].weight.mul_(0.9)
    assert pair.packed == 3


def test_memory_goes_with_the_module(pair: Pair) -> None:
    def taken() -> int:
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    assert pair.is_right() and pair.is_right()
    with_kept = taken()
    pair.kernel.forget_packed_weights()  # type: ignore[operator]
    assert taken() < with_kept
    assert pair.is_right()
    kernel, pair.kernel = pair.kernel, nn.Identity()
    before = taken()
    del kernel
    assert taken() < before and not pair.file._kept and not getattr(pair.file, "_graphs", {})


def test_convolutions(tmp_path: Path) -> None:
    for replayed in (False, True):
        pair = Pair("residual", tmp_path, replayed)
        x = pair.input()
        assert pair.is_right(x) and pair.is_right(x)
        for one in pair.both():
            one.first[0].weight.mul_(2)
        assert pair.is_right(x) and pair.is_right(x) and pair.packed == 2

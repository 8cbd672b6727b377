"""What counts of a candidate's CUDA graphs; capturing itself needs a GPU (test_replay_gpu.py)."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation.graphs import Graphs, OneGraph
from kernel_lsp.validation.launches import Launches
from kernel_lsp.validation.precompiling import precompile


class Noted(TorchDispatchMode):
    def __init__(self, held: OneGraph) -> None:
        super().__init__()
        self.held = held

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.held.note(func, args, out)
        return out


def test_a_graph_counts_in_each_replay_and_once_in_the_call_that_warms_it_up() -> None:
    graphs = Graphs()
    held = OneGraph(launches=3, operators={"aten.mm": [2, 100], "aten.sort": [1, 10]})
    made = {"aten.mm": [2, 90]}
    graphs.captured, graphs.replayed = [held], [held]
    assert graphs.launches(3) == 3 and graphs.operators(made) == {"aten.mm": [2, 100], "aten.sort": [1, 10]}
    assert graphs.launches(0) == 3, "one that was not warmed up has its launches all the same"
    graphs.reset()
    assert graphs.launches(0) == 0 and graphs.operators({}) == {}
    graphs.replayed = [held, held]
    assert graphs.launches(1) == 7 and graphs.operators(made)["aten.mm"] == [6, 100]
    assert made == {"aten.mm": [2, 90]}


def test_what_was_allocated_in_a_graph_is_poisoned_and_nothing_else() -> None:
    held = OneGraph()
    weight, given = torch.ones(4, 4), torch.ones(4)
    with Noted(held):
        seen = weight.view(2, 8)
        given.mul_(1)
        result = torch.empty(4)
        part = (given + weight[0]).view(2, 2)
        places = torch.zeros(3, dtype=torch.int64)
    result.fill_(1.0)
    held.poison(7)
    assert bool(result.isnan().all()) and bool(part.isnan().all()) and places.tolist() == [7, 7, 7]
    assert bool((weight == 1).all()) and bool((given == 1).all()) and bool((seen == 1).all())
    assert held.operators["aten.add"] == [1, 4]
    held.poison(None)
    assert places.tolist() != [7, 7, 7]


def test_nothing_is_captured_while_launches_are_but_compiled() -> None:
    launches, before = Launches(), torch.cuda.is_current_stream_capturing
    seen: list[object] = []

    def call() -> None:
        seen.append(torch.cuda.is_current_stream_capturing())
        seen.append(launches.graphs.refused)
        launches.graphs.start()
        try:
            torch.cuda.CUDAGraph.capture_begin(object())
        except RuntimeError as error:
            seen.append(str(error))
        finally:
            launches.graphs.stop()

    precompile([call], launches)
    assert seen == [True, True, "launches are but compiled now, a graph would have none of them"]
    assert torch.cuda.is_current_stream_capturing is before and not launches.graphs.refused

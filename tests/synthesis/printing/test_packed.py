"""Packed weights that are kept from call to call, under Triton's interpreter: what is launched, and which changes are noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_lsp.packed_weights import keeps
from tests.synthesis import interpreted
from tests.synthesis.printing import recorded_graphs
from tests.synthesis.printing.packed_modules import MODULES, Counts, Product, Residual, Returns, Shares, written
from tests.synthesis.printing.replay_modules import LEFT, REPLAYED, Perceptron, loaded, variant

#: What a program does with a kernel file, on a CPU
PROGRAM = """
import copy, gc, json, pickle, sys, weakref
from pathlib import Path
import torch
from torch import nn
from kernel_lsp.validation import launches
from kernel_lsp.validation.interpreter import repair
from tests.synthesis.printing import recorded_graphs
from tests.synthesis.printing.packed_modules import made

repair()
torch.set_num_threads(1)
watched = launches.watch(True)
module, kernel, file, x = made(sys.argv[2], Path(sys.argv[1]), replayed=sys.argv[3] == "replayed")
weight = next(name for name, _ in module.named_parameters() if name.endswith("weight"))
owner, found = weight.rpartition(".")[0], {}


def call(one=kernel):
    watched.reset()
    return one(x), watched.count


def right(one=kernel, like=module):
    out, count = call(one)
    expected = like(x)
    return [bool(torch.allclose(out, expected, atol=1e-4, rtol=1e-3)), count]


def of(one):
    return one.get_parameter(weight)


with torch.no_grad():
    assert kernel._in_envelope(x)
    found["first"], found["second"] = right(), right()
    for one in (module, kernel):
        of(one).mul_(0.5)
    found["in place"] = right()
    for one in (module, kernel):
        setattr(one.get_submodule(owner), "weight", nn.Parameter(of(one) + 0.25))
    found["replaced"], found["then"] = right(), right()
    other = type(module)().eval()
    for one in (module, kernel):
        one.load_state_dict(other.state_dict())
    found["loaded"] = right()
    for one in (module, kernel):
        one.load_state_dict({name: t.clone() + 0.125 for name, t in other.state_dict().items()}, assign=True)
    found["assigned"] = right()
    for one in (module, kernel):
        one.double()
    found["double"] = bool(torch.equal(kernel(x.double()), module(x.double())))
    for one in (module, kernel):
        one.float()
    for one in (module, kernel):
        one.half().float()  # which rounds the weights, in the objects that they were, perhaps where they lay
    found["and back"] = right()
for one in (module, kernel):
    with torch.enable_grad():
        one(x).square().mean().backward()
    torch.optim.SGD(one.parameters(), lr=0.5).step()
found["gradients"] = all(torch.equal(a.grad, b.grad) for a, b in zip(module.parameters(), kernel.parameters()))
with torch.no_grad():
    found["optimizer"] = right()
    for one in (module, kernel):
        of(one).data.mul_(3)
    found["through .data"] = right()
    kernel.forget_packed_weights()
    found["forgotten"] = right()
    same = copy.deepcopy(kernel)
    found["deepcopy"], found["of the copy"] = right(same), right(same)
    of(same).zero_()
    found["copy changed"] = [right(same)[0], right()[0]]
    again = pickle.loads(pickle.dumps(kernel))
    found["pickle"], found["attributes"] = right(again), sorted(vars(kernel)) == sorted(vars(module))
    found["state"] = list(kernel.state_dict()) == list(module.state_dict())
    held, kept = weakref.ref(of(again)), len(file._kept)
    del again
    gc.collect()
    found["dropped"] = [held() is None, kept - len(file._kept)]
    old = weakref.ref(of(kernel))
    setattr(kernel.get_submodule(owner), "weight", nn.Parameter(of(module).clone()))
    gc.collect()
    found["parameter dropped"] = old() is None
    with torch.inference_mode():
        tensors = copy.deepcopy(kernel)
        assert of(tensors).is_inference()
        found["inference"], found["inference again"] = right(tensors), right(tensors)
        of(tensors).mul_(0.5)
        found["inference changed"] = call(tensors)[1]
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=["product", "replayed"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program found out, with a product's direct launches and with the file of several products that also replays."""
    name, how = ("product", "direct") if request.param == "product" else ("perceptron", "replayed")
    folder = str(tmp_path_factory.mktemp(request.param))
    return json.loads(interpreted.printed(PROGRAM, folder, name, how).splitlines()[-1])


def test_a_second_call_launches_fewer_kernels(found: Any) -> None:
    (right, first), (still, second) = found["first"], found["second"]
    assert right and still and second < first


@pytest.mark.parametrize("change", ["in place", "replaced", "loaded", "assigned", "optimizer", "and back"])
def test_a_change_that_moves_the_version_counter_is_noticed(found: Any, change: str) -> None:
    right, launched = found[change]
    assert right
    assert launched > found["second"][1], "what was kept is packed anew"
    assert found["then"] == found["second"]


def test_a_change_through_data_is_noticed_once_what_is_kept_was_forgotten(found: Any) -> None:
    assert found["through .data"] == [False, found["second"][1]], "as the file's docstring says"
    assert found["forgotten"] == found["first"]


def test_gradients_and_other_dtypes_are_eagers(found: Any) -> None:
    assert found["gradients"] and found["double"]


def test_copies_pack_weights_of_their_own(found: Any) -> None:
    assert found["deepcopy"] == found["pickle"] == found["first"]
    assert found["of the copy"] == found["second"]
    assert found["copy changed"] == [False, True]
    assert found["attributes"] and found["state"]


def test_nothing_is_held_of_a_module_or_a_parameter_that_is_dropped(found: Any) -> None:
    assert found["dropped"] == [True, 1]
    assert found["parameter dropped"]


def test_of_inference_tensors_nothing_is_kept(found: Any) -> None:
    assert found["inference"] == found["inference again"] == found["first"]
    assert found["inference changed"] == found["first"][1]


@pytest.mark.parametrize("name", ["product", "residual"])
def test_without_the_setting_nothing_of_it_is_in_a_file(name: str) -> None:
    kind, shape = MODULES[name]
    module, x = kind().eval(), torch.randn(shape)
    for one in written(module, x, keep=False):
        assert not keeps(one.source)
        assert "packed_weights" not in one.source and "_kept" not in one.source and "_PACKED_FROM" not in one.source


def test_the_file_says_what_it_keeps_and_what_it_does_not_notice() -> None:
    source = next(one for one in written(Product().eval(), torch.randn(6, 48)) if keeps(one.source)).source
    said = " ".join(source.split('"""')[1].split())
    assert "Asked for with keep_packed_weights: what depends on parameters and buffers alone" in said
    assert (
        "such as one through .data or by a fused optimizer, is not noticed: call forget_packed_weights() after it"
        in said
    )
    assert "def forget_packed_weights(self):" in source
    between = said.partition("What is stored from one kernel to the next (")[2].partition(")")[0]
    assert between and "weight" not in between, "a call neither writes nor waits for what is kept"


def test_what_a_caller_is_given_and_what_a_call_changes_is_not_kept() -> None:
    made = {kind: variant(written(kind().eval(), torch.randn(5, 8)), "") for kind in (Shares, Returns, Counts)}
    assert {kind for kind, one in made.items() if keeps(one.source)} == {Shares}


class Forgets(Shares):
    def forget_packed_weights(self) -> None:
        """The class has a method of this name itself."""


def test_a_class_with_a_method_of_that_name_keeps_it() -> None:
    assert not any(keeps(one.source) for one in written(Forgets().eval(), torch.randn(5, 8)))


def test_torchs_convolutions_get_weights_that_are_kept_with_their_channels_last() -> None:
    module, x = Residual().eval(), torch.randn(2, 16, 8, 8)
    label = f"convolutions left to torch, channels last, {REPLAYED}"
    kept, before = (
        next(one.source for one in written(module, x, keep=keep) if one.variant == label) for keep in (True, False)
    )
    assert "_weight_last" in kept and "_weight_last" not in before
    launched = kept.partition("def residual_packed(")[2].partition("\n\n")[0]
    assert launched.count("_weight_last = ") == 6
    assert all(one.variant != LEFT or not keeps(one.source) for one in written(module, x))


class Replayed:
    """The file's graphs for a function of torch's operators, which multiplies with a weight that was packed before, on the CPU."""

    def __init__(self, folder: Path) -> None:
        source = variant(
            written(Product().eval(), torch.randn(6, 48)), "float16 planes, replayed as a CUDA graph"
        ).source
        self.file = loaded(source, folder, "product_recorded_triton")
        self.packs = 0
        self.file.product_packed = self.pack
        self.weight, self.bias = torch.randn(4, 8), torch.randn(4)
        self.graphs: Any = None

    def pack(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.packs += 1
        return (2 * weight, weight.abs().amax().reshape(1))

    @staticmethod
    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, packed: torch.Tensor, peak: torch.Tensor) -> Any:
        return x @ packed.mT + bias, peak + 1

    def is_right(self, x: torch.Tensor) -> bool:
        if self.graphs is None:
            self.graphs = self.file._Graphs()
        held = self.weight, self.bias
        out = self.graphs.run(self.run, (x,), held)
        expected = self.run(x, *held, 2 * self.weight, self.weight.abs().amax().reshape(1))
        return all(torch.allclose(one, other) for one, other in zip(out, expected, strict=True))


def test_a_replay_reads_what_was_packed_anew_where_it_lay(tmp_path: Path) -> None:
    with recorded_graphs.instead_of_cuda(), torch.no_grad():
        one = Replayed(tmp_path)
        assert one.is_right(torch.randn(3, 8)) and one.is_right(torch.randn(3, 8)) and one.is_right(torch.randn(5, 8))
        assert (one.packs, one.graphs.captures) == (1, 2)
        places = [t.data_ptr() for t in one.graphs.packed]
        for count in (2, 3):
            one.weight.mul_(0.5)
            assert one.is_right(torch.randn(3, 8)) and one.is_right(torch.randn(5, 8))
            assert (one.packs, one.graphs.captures) == (count, 2), "no graph is captured again"
        one.bias.add_(1)
        assert one.is_right(torch.randn(3, 8)) and one.packs == 3, "the bias is read where it lies"
        one.weight = one.weight + 1
        assert one.is_right(torch.randn(3, 8)) and (one.packs, one.graphs.captures) == (4, 3)
        one.weight.data.mul_(2)
        assert not one.is_right(torch.randn(3, 8)), "no version counter moves"
        assert [t.data_ptr() for t in one.graphs.packed] == places


def test_launches_without_a_graph_read_what_is_packed_too(tmp_path: Path) -> None:
    with recorded_graphs.instead_of_cuda(), torch.no_grad():
        one = Replayed(tmp_path)
        one.file._MOST_CAPTURES = 0
        assert one.is_right(torch.randn(3, 8)) and one.is_right(torch.randn(3, 8)) and one.packs == 1
        one.weight.mul_(0.5)
        assert one.is_right(torch.randn(3, 8)) and one.packs == 2 and not one.graphs.captured


def test_a_replay_does_not_begin_with_what_was_packed_of_other_values(tmp_path: Path) -> None:
    source = next(
        one.source
        for one in written(Perceptron().eval(), torch.randn(3, 64))
        if "def begin(" in one.source and keeps(one.source)
    )
    file = loaded(source, tmp_path, "perceptron_recorded_triton")
    places = file._PACKED_FROM
    file.perceptron_packed = lambda *weights: tuple(2 * weight for weight in weights)
    held = [torch.randn(4, 4) for _ in range(max(places) + 1)]

    def run(x: torch.Tensor, *read: torch.Tensor) -> torch.Tensor:
        return x + sum(read[len(held) :])  # type: ignore[no-any-return]

    with recorded_graphs.instead_of_cuda(), torch.no_grad():
        graphs, x = file._Graphs(), torch.zeros(4, 4)
        assert graphs.begin((x,), held) is None
        graphs.run(run, (x,), held)
        expected = 2 * sum(held[place] for place in places)
        torch.testing.assert_close(graphs.begin((x,), held), expected)
        held[places[-1]].add_(1)
        assert graphs.begin((x,), held) is None
        torch.testing.assert_close(graphs.run(run, (x,), held), expected + 2)
        torch.testing.assert_close(graphs.begin((x,), held), expected + 2)

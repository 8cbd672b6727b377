"""What a candidate changes of its process is found by name; what torch itself brings along is not."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.utils.benchmark
import triton
from torch import nn

from kernel_lsp.validation.fingerprints import Fingerprints


class Net(nn.Module):
    def forward(self, x):
        return nn.functional.relu(x)


@pytest.fixture
def fingerprints():
    import torch._dynamo  # noqa: F401 (as a warm process has)

    return Fingerprints(Net)


def test_nothing_has_changed(fingerprints):
    Net()(torch.ones(3))
    assert fingerprints.changed() == []


@pytest.mark.parametrize(
    "owner, name",
    [
        (torch, "allclose"),
        (torch.nn.functional, "relu"),
        (torch.Tensor, "__eq__"),
        (torch.cuda.Event, "elapsed_time"),
        (torch.cuda, "synchronize"),
        (triton.testing, "do_bench"),
        (triton.testing, "do_bench_cudagraph"),
        (torch.utils.benchmark.Timer, "timeit"),
        (torch.utils.benchmark, "Timer"),
        (torch.nn.Linear, "forward"),
        (Net, "forward"),
        (__import__("time"), "perf_counter"),
    ],
)
def test_a_function_in_place_of_another_is_named(fingerprints, monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, lambda *_: 0.0)
    assert any(found.endswith(f".{name}") for found in fingerprints.changed())


class _Equal:
    """Equal to anything, and may be called."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __call__(self, *_):
        return 0.0


def test_an_object_that_says_it_is_the_function_is_named(fingerprints, monkeypatch):
    monkeypatch.setattr(torch, "allclose", _Equal())
    assert fingerprints.changed() == ["torch.allclose"]


def test_a_function_under_another_name_and_one_in_place_of_an_inherited_one_are_named(fingerprints, monkeypatch):
    """The last one of a class, so that the functions and their order stay the same."""

    class Last(nn.Module):
        def forward(self, x):
            return x

        def last(self):
            return 1

    print_of = Fingerprints(Last)
    assert print_of.changed() == []
    last = Last.last
    del Last.last
    Last.train = last
    assert [name.rpartition(".")[2] for name in print_of.changed()] == ["last", "train"]


def test_new_numbers_in_a_module_are_no_change(fingerprints, monkeypatch):
    monkeypatch.setattr(torch, "a_new_number", 3, raising=False)
    assert fingerprints.changed() == []


def test_flags_are_named(fingerprints):
    torch.backends.cudnn.allow_tf32 ^= True
    torch.set_default_dtype(torch.float64)
    try:
        found = fingerprints.changed()
    finally:
        torch.backends.cudnn.allow_tf32 ^= True
        torch.set_default_dtype(torch.float32)
    assert {"torch.backends.cudnn.allow_tf32", "torch.get_default_dtype()"} <= set(found)


def test_hooks_on_all_modules_and_threads_are_named(fingerprints):
    hook = nn.modules.module.register_module_forward_pre_hook(lambda *_: None)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    found = fingerprints.changed()
    stop.set()
    thread.join()
    hook.remove()
    assert found == ["the number of threads", "torch.nn.modules.module._global_forward_pre_hooks"]
    assert fingerprints.changed() == []

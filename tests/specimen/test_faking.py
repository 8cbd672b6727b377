"""What is learned with tensors that take no memory is what real ones would have said."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from kernel_lsp.errors import NothingToLower
from kernel_lsp.specimen import faking
from tests.synthesis import golden
from tests.synthesis.cases import CASES, made

#: of which all candidates are written; else the first one is, as in the tests of the texts and of the results
EVERY = golden.CHOSEN[::2]


def text(name: str, fake: bool) -> str:
    """What is written for a case, whose module and inputs are made without memory or as they are."""
    case = CASES[name]
    torch.manual_seed(0)
    with faking.within(faking.mode() if fake else None):
        module, arguments = case.kind(*case.init).train(case.training), case.inputs(0)
    if fake:
        assert all(map(faking.is_fake, [*module.parameters(), *pytree.tree_leaves(arguments)]))
    try:
        return made(case, module, arguments, "cases", golden.WAYS.get(name, ""), every=fake and name in EVERY).source
    except NothingToLower as error:
        return str(error)


# What is faked is how a module is made and exported: those that differ from one of these in a function or a dtype alone do that alike.
@pytest.mark.parametrize(
    "name",
    [
        name if i % 24 == 2 else pytest.param(name, marks=pytest.mark.cases if i % 12 else pytest.mark.slow)
        for i, name in enumerate(golden.CHOSEN)
    ],
)
def test_the_same_text_is_written(name: str) -> None:
    try:
        found = text(name, fake=True)
    except (AssertionError, torch._subclasses.fake_tensor.DataDependentOutputException):
        pytest.skip("its inputs or its constructor need values")
    read = golden.FOLDER / f"{name}.txt"
    known = read.exists() and torch.__version__.startswith(
        golden.TORCH
    )  # then test_golden.py compares it with real ones
    assert found == (read.read_text() if known else text(name, fake=False))


def test_a_shared_parameter_stays_shared_when_it_is_converted() -> None:
    with faking.within(faking.mode()):
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        second.weight = first.weight
        both = nn.Sequential(first, second).half()
    assert both[0].weight is both[1].weight
    assert both[0].weight.dtype == torch.float16
    assert len(list(both.parameters())) == 3


def test_a_forward_that_assigns_an_attribute_leaves_the_module_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.register_buffer("last", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.last = x
            self.more = x
            return x + 1

    module = Counting()
    outputs, flops = faking.run(module, (torch.randn(3),), {}) or (None, None)
    assert outputs.shape == (3,) and flops == 0
    assert module.calls == 0 and not faking.is_fake([module.last]) and not hasattr(module, "more")


def test_another_device_is_left_to_the_real_attempt() -> None:
    with pytest.raises((faking.OtherDevice, RuntimeError, AssertionError)), faking.within(faking.mode()):
        torch.zeros(3, device="cuda:77")


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (lambda x: x.to(77), "cuda:77"),
        (lambda x: x.to("cuda:77"), "cuda:77"),
        (lambda x: x.to(device=77), "cuda:77"),
        (lambda x: torch.zeros(3, device=77), "cuda:77"),
        (lambda x: x.cuda(77), "cuda:77"),
        (lambda x: x.cuda(device=77), "cuda:77"),
        (lambda x: x.cuda("cuda:1"), "cuda:1"),
        (lambda x: x.cuda(torch.device("cuda", 1)), "cuda:1"),
        (lambda x: x.cuda(), ""),
        (lambda x: x.cuda(0), ""),
        (lambda x: x.to(0), ""),
        (lambda x: x.to("cpu", torch.float64, True), ""),
        (lambda x: x.to(torch.float64), ""),
    ],
)
def test_a_gpu_that_is_not_there_is_found_under_each_of_its_names(ask, missing: str, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert asked_in_vain(ask) == missing


@pytest.mark.parametrize("ask", [lambda x: x.to(0), lambda x: x.cuda(), lambda x: torch.zeros(3, device=0)])
def test_without_a_gpu_the_first_one_is_missing_too(ask, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert asked_in_vain(ask).startswith("cuda")


def asked_in_vain(ask) -> str:
    """The device that is missing; "" where the call is left to torch, which may still refuse it here."""
    try:
        with faking.mode() as fake, faking._OnGpusThatAreHere():
            ask(fake.from_tensor(torch.randn(3)))
    except faking.OtherDevice as error:
        return str(error)
    except (RuntimeError, AssertionError):
        pass
    return ""


def test_hollow_tensors_are_plain_zeros_of_the_same_layout() -> None:
    with faking.within(faking.mode()):
        module = nn.BatchNorm1d(3).bfloat16()
        module.scale = torch.tensor(2.5)
        x = torch.randn(4, 3, dtype=torch.float16).t()
    faking.hollowed(module)
    assert type(module.weight) is nn.Parameter and module.weight.dtype == torch.bfloat16
    assert type(module.running_mean) is torch.Tensor and module.scale.item() == 2.5
    plain = faking.hollow(x)
    assert type(plain) is torch.Tensor and plain.stride() == (1, 3) and plain.count_nonzero() == 0

"""The figures of known GPUs agree with one another and with measurements; others are estimated, and it is said how."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

from kernel_lsp.synthesis.schedule.target import Target, from_device, target
from kernel_lsp.targets import DEFAULT, LIMITS, NAMED
from kernel_lsp.validation import interpreter

#: what was measured on an H100 80GB HBM3, in bytes/s or FLOP/s, and whose peak it stands against
MEASURED_ON_H100 = {
    "a copy pass": (2.97e12, "bandwidth"),
    "the weights of 8192 x 8192 in fp8": (8192**2 / 22.4e-6, "bandwidth"),
    "cuBLAS in float32": (51e12, "float32"),
    "cuBLAS in tf32": (389e12, "tf32"),
    "three products of bf16 planes, 8192^3": (3 * 2 * 8192**3 / 4965e-6, "bfloat16"),
}

#: highest clock in Hz, by the vendors; the tensor cores' where that is another
CLOCKS = {"A100": 1.41e9, "H100": 1.83e9, "H200": 1.83e9, "B200": 1.855e9, "L4": 2.04e9, "RTX 4090": 2.52e9}


def reported(**own: Any) -> types.SimpleNamespace:
    """Properties as torch gives them, of a GPU that is not in the list."""
    base = {
        "name": "NVIDIA X1",
        "major": 9,
        "minor": 0,
        "multi_processor_count": 66,
        "warp_size": 32,
        "max_threads_per_multi_processor": 2048,
        "shared_memory_per_block": 48 << 10,
        "shared_memory_per_block_optin": 227 << 10,
        "regs_per_multiprocessor": 65536,
        "L2_cache_size": 25 << 20,
        "clock_rate": 1_830_000,
        "memory_clock_rate": 2_619_000,
        "memory_bus_width": 2560,
        "gcnArchName": "NVIDIA X1",
    }
    return types.SimpleNamespace(**base | own)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``found(properties)`` → the target of a device that reports these."""

    def of(properties: types.SimpleNamespace) -> Target:
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
        return from_device(torch.device("cuda", 0))

    return of


@pytest.mark.parametrize("what", MEASURED_ON_H100)
def test_what_was_measured_on_an_h100_is_below_its_peak_and_not_far_below(what: str) -> None:
    figure, peak = MEASURED_ON_H100[what]
    h100 = target("H100")
    most = h100.bandwidth if peak == "bandwidth" else h100.rates[peak]
    assert 0.6 < figure / most < 1


@pytest.mark.parametrize("name", CLOCKS)
def test_data_sheets_follow_from_multiprocessors_clock_and_capability(name: str) -> None:
    known = target(name)
    assert known.capability is not None
    limits = LIMITS[known.capability]
    assert known.rates.keys() == limits.per_cycle.keys()
    for kind, per_cycle in limits.per_cycle.items():
        if kind == "float32" and known.capability >= (9, 0):
            continue  # outside the tensor cores these clock higher
        halved = 0.5 if name == "RTX 4090" and kind != "float32" else 1
        assert known.rates[kind] == pytest.approx(known.multiprocessors * CLOCKS[name] * per_cycle * halved, rel=0.03)


@pytest.mark.parametrize("known", NAMED.values(), ids=NAMED)
def test_rates_grow_as_numbers_shrink_and_threads_are_warps(known: Target) -> None:
    rates = known.rates
    assert rates["float32"] <= rates["tf32"] < rates["float16"] == rates["bfloat16"]
    assert rates.get("fp8", 2 * rates["float16"]) == pytest.approx(2 * rates["float16"], rel=0.01)
    assert known.threads == known.warps * known.warp_size
    assert known.rate("float8_e4m3fn") == rates.get("fp8", rates["float16"]) and known.rate("tf32") == rates["tf32"]
    assert known.bandwidth <= known.l2_bandwidth
    assert known.shared_memory % 1024 == 0 and known.note == ""


def test_a_target_is_found_by_its_name_and_by_the_drivers() -> None:
    assert target("h200") is target("NVIDIA H200") is NAMED["H200"]
    assert target() is target("H100") is DEFAULT
    assert len({hash(one) for one in NAMED.values()}) == len(NAMED)


def test_of_an_unknown_name_it_is_said_whose_figures_are_used() -> None:
    unknown = target("Voodoo 2")
    assert (unknown.multiprocessors, unknown.rates) == (DEFAULT.multiprocessors, DEFAULT.rates)
    assert unknown.note.startswith("no figures are known for Voodoo 2; those of H100 are used")


def test_without_a_gpu_it_is_the_default() -> None:
    assert from_device(torch.device("cpu")) is DEFAULT


def test_a_known_device_has_the_figures_of_its_data_sheet(found: Any) -> None:
    assert found(reported(name="NVIDIA H100 80GB HBM3", multi_processor_count=132)) is NAMED["H100"]
    part = found(reported(name="NVIDIA H100 80GB HBM3", multi_processor_count=16))
    assert part.multiprocessors == 16 and "computed from its clocks" in part.note


def test_of_an_unknown_device_sizes_are_the_drivers_and_rates_follow_from_its_clocks(found: Any) -> None:
    half = found(reported())
    whole = NAMED["H100"]
    assert (half.multiprocessors, half.shared_memory, half.l2) == (66, 227 << 10, 25 << 20)
    assert (half.architecture, half.warps, half.programs) == ("sm_90", 64, 32)
    assert half.bandwidth == pytest.approx(whole.bandwidth / 2, rel=0.01)
    assert half.l2_bandwidth == pytest.approx(whole.l2_bandwidth / 2, rel=0.05)
    assert half.rates["tf32"] == pytest.approx(whole.rates["tf32"] / 2, rel=0.01)
    assert half.note == "the bandwidth and rates of NVIDIA X1 are computed from its clocks"


def test_the_tensor_cores_of_a_geforce_do_half(found: Any) -> None:
    same = dict(major=8, minor=9, multi_processor_count=128, clock_rate=2_520_000)
    card = found(reported(name="NVIDIA GeForce RTX 4090 D", **same))
    assert card.rates["float16"] == pytest.approx(NAMED["RTX 4090"].rates["float16"], rel=0.01)
    assert card.rates["float32"] == pytest.approx(NAMED["RTX 4090"].rates["float32"], rel=0.01)
    assert found(reported(**same)).rates["float16"] == 2 * card.rates["float16"]


def test_an_unknown_architecture_or_clock_takes_anothers_figures_and_says_so(found: Any) -> None:
    older = found(reported(major=7, minor=5, shared_memory_per_block_optin=None))
    assert older.rates == DEFAULT.rates and older.shared_memory == 48 << 10
    assert older.note == "no figures are known for the rates of NVIDIA X1; those of H100 are used"
    silent = found(reported(memory_clock_rate=0, clock_rate=0))
    assert silent.bandwidth == DEFAULT.bandwidth and "bandwidth and rates" in silent.note


def test_an_unknown_gpu_of_amd_is_not_taken_for_nvidias(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.0")
    arch = dict(
        name="AMD Instinct MI250X", gcnArchName="gfx90a:sramecc+", warp_size=64, shared_memory_per_block=64 << 10
    )
    mi250 = found(reported(**arch, shared_memory_per_block_optin=None))
    assert (mi250.architecture, mi250.capability, mi250.warps) == ("gfx90a", None, 32)
    assert mi250.shared_memory == 64 << 10
    assert mi250.rates == NAMED["MI300X"].rates and mi250.note.endswith("those of MI300X are used")


@pytest.mark.gpu
def test_a_known_gpu_that_is_here_is_as_its_driver_says() -> None:
    properties = torch.cuda.get_device_properties(0)
    here = from_device(torch.device("cuda", 0))
    assert here.multiprocessors == properties.multi_processor_count
    assert here.threads == properties.max_threads_per_multi_processor
    assert here.l2 == pytest.approx(properties.L2_cache_size, rel=0.05)
    assert here.shared_memory == getattr(properties, "shared_memory_per_block_optin", here.shared_memory)


def test_the_interpreter_pretends_to_be_the_default() -> None:
    """Its figures are the ones of the device for which kernels are written."""
    assert interpreter.PRETENDED is DEFAULT
    assert interpreter.PROPERTIES["max_shared_mem"] == 232448 and interpreter.CAPABILITY == 90
    clock, width = interpreter.PROPERTIES["mem_clock_rate"], interpreter.PROPERTIES["mem_bus_width"]
    assert 2 * clock * 1e3 * width / 8 == pytest.approx(DEFAULT.bandwidth, rel=0.01)

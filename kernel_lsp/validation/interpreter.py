"""Triton's interpreter, repaired where it is silently wrong, takes very long or needs a GPU that is not there.

``repair`` is called once, in a process that imported triton with ``TRITON_INTERPRET=1`` and before any candidate is
imported. What it changes, each because it was seen to fail:

- bfloat16 is kept as float32 numbers rounded to bfloat16 after every operation (the interpreter keeps the raw bits in
  uint16 and computes with those as if they were integers);
- libdevice functions are evaluated by torch (the interpreter has none);
- reductions and scans with a function of the kernel's own call it for blocks (the interpreter: for each element, for seconds);
- what a masked load without ``other`` leaves undefined is NaN (the interpreter: zeros);
- a kernel's calls of functions do not set the language up again, which the launch did before them;
- a driver that answers what autotuning and launch heuristics ask for; an autotuner takes its first configuration;
- CUDA-only calls of a launcher (``x.is_cuda``, ``.cuda()``, ``device="cuda"``) mean the CPU.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from kernel_lsp import targets
from kernel_lsp.validation import interpreter_calls, interpreter_folds, interpreter_loads, interpreter_numbers

#: the GPU that there seems to be
PRETENDED = targets.H100
#: what its driver answers; clocks in kHz
PROPERTIES = {
    "max_shared_mem": PRETENDED.shared_memory,
    "multiprocessor_count": PRETENDED.multiprocessors,
    "warpSize": PRETENDED.warp_size,
    "max_num_regs": PRETENDED.registers,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 2619000,
    "mem_bus_width": 5120,
}
#: its compute capability as Triton writes it
CAPABILITY = int(PRETENDED.architecture.removeprefix("sm_"))

#: autotuned kernels that were launched → how many configurations each has
autotuned: dict[str, int] = {}
#: the number of the configuration that autotuners are to take; None where they choose as they do
_chosen: int | None = None
#: names of what ``replaced`` has found replaced by somebody else
overwritten: list[str] = []
_unhooked: list[Any] = []  # Autotuner.run as Triton has it, while ours stands in its place


class PretendedDriver:
    """Enough of a Triton driver for a launcher to run where there is no GPU."""

    def __init__(self) -> None:
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", CAPABILITY, 32)
        self.utils = types.SimpleNamespace(
            get_device_properties=lambda device: dict(PROPERTIES),
            load_binary=self._no_gpu,
        )

    def _no_gpu(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("there is no GPU to load a kernel on")

    launcher_cls = _no_gpu

    def get_current_target(self) -> Any:
        """The pretended GPU as Triton's compiler knows it."""
        return self.target

    def get_current_device(self) -> int:
        """Device 0, the only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Nothing is done: there is one device."""
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        """Stream 0."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The CPU, where the tensors are."""
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """``torch.cpu`` in place of ``torch.cuda``."""
        return torch.cpu

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """An empty tensor: no cache is cleared between timings."""
        return torch.empty(0)

    def clear_cache(self, cache: Any) -> None:
        """Nothing is done."""
        pass

    def map_python_to_cpp_type(self, name: str) -> str:
        """The name as it is, since no launcher is compiled."""
        return name

    def get_benchmarker(self) -> Callable[..., Any]:
        """A benchmark that calls the function once and says 1 ms, so that an autotuner ends."""

        def benchmark(fn: Callable[[], Any], quantiles: Any = None, **_: Any) -> Any:
            fn()
            return [1.0] * len(quantiles) if quantiles else 1.0

        return benchmark


def repair() -> None:
    """Make the interpreter of this process fit to validate by."""
    import triton
    from triton.runtime import driver, interpreter

    np.seterr(all="ignore")  # overflow to infinity is what the hardware does, too
    driver.set_active(PretendedDriver())
    interpreter_numbers.repair_bfloat16(triton.language, interpreter)
    interpreter_numbers.repair_float8(triton.language, interpreter)
    interpreter_numbers.repair_comparisons(triton.language, interpreter)
    interpreter_numbers.repair_libdevice(triton.language, interpreter)
    interpreter_folds.repair_folds(triton.language, interpreter)
    interpreter_calls.repair_calls(triton.language, interpreter)
    interpreter_loads.poison_masked_lanes(interpreter)
    first_configuration_only()


def first_configuration_only() -> None:
    """An autotuner without a GPU has nothing to measure: it takes its first configuration unless another is asked for."""
    _hook_autotuner(first=True)


def _hook_autotuner(first: bool) -> None:
    """Have autotuners take the configuration that ``configuration`` asks for; else their first, or what they choose."""
    from triton.runtime.autotuner import Autotuner

    run = Autotuner.run

    def run_chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        every = self.configs
        if len(every) < 2:
            return run(self, *args, **kwargs)
        autotuned[getattr(self.base_fn, "__name__", "kernel")] = len(every)
        if _chosen is None and not first:
            return run(self, *args, **kwargs)
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            allowed = self.prune_configs(kwargs) if _chosen is not None else every
        except Exception:
            allowed = every
        self.configs = [allowed[(_chosen or 0) % len(allowed)]]
        try:
            return run(self, *args, **kwargs)
        finally:
            self.configs = every

    Autotuner.run = run_chosen
    _unhooked.append(run)


@contextlib.contextmanager
def configuration(number: int | None) -> Iterator[None]:
    """Within this context autotuners take configuration ``number``, counted round; None leaves the choice to them."""
    global _chosen
    if number is None:
        yield
        return
    from triton.runtime.autotuner import Autotuner

    hooked = bool(_unhooked)
    if not hooked:
        _hook_autotuner(first=False)
    _chosen = number
    try:
        yield
    finally:
        _chosen = None
        if not hooked:
            Autotuner.run = _unhooked.pop()


@contextlib.contextmanager
def cuda_answers() -> Any:
    """What a launcher may ask of ``torch.cuda`` is answered as ``PRETENDED`` would."""
    properties = types.SimpleNamespace(
        name=PRETENDED.device,
        multi_processor_count=PRETENDED.multiprocessors,
        major=CAPABILITY // 10,
        minor=CAPABILITY % 10,
        total_memory=80 << 30,
        warp_size=PRETENDED.warp_size,
    )
    with replaced(
        (torch.cuda, "device", lambda device: contextlib.nullcontext()),
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "synchronize", lambda device=None: None),
        (torch.cuda, "get_device_properties", lambda device=None: properties),
        (torch.cuda, "get_device_capability", lambda device=None: (properties.major, properties.minor)),
    ):
        yield


@contextlib.contextmanager
def pretending_cuda() -> Any:
    """CUDA-only words of a launcher mean the CPU within this context."""
    with answering_as_cuda(), on_the_cpu():
        yield


@contextlib.contextmanager
def answering_as_cuda() -> Any:
    """Within this context tensors and ``torch.cuda`` say that there is a GPU."""
    with cuda_answers(), replaced((torch.Tensor, "is_cuda", property(lambda self: True))):
        yield


def on_the_cpu() -> contextlib.AbstractContextManager[Any]:
    """A mode of torch's in which tensors that are asked for on a GPU are made on the CPU."""
    return _OnTheCpu()


class _OnTheCpu(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs and _is_cuda(kwargs["device"]):
            kwargs["device"] = "cpu"
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to and any(_is_cuda(a) for a in args[1:]):
            args = (args[0], *("cpu" if _is_cuda(a) else a for a in args[1:]))
        return func(*args, **kwargs)


@contextlib.contextmanager
def replaced(*attributes: tuple[Any, str, Any]) -> Any:
    """Attributes set for a while; those that were inherited are inherited again after.

    Where something else stands in such a place at the end, its name goes to ``overwritten``: putting back undoes it, too.
    """
    kept = [(owner, name, owner.__dict__.get(name)) for owner, name, _ in attributes]
    for owner, name, value in attributes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        overwritten.extend(
            f"{owner.__name__}.{name}" for owner, name, value in attributes if owner.__dict__.get(name) is not value
        )
        for owner, name, value in kept:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _is_cuda(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and device.split(":")[0] == "cuda"

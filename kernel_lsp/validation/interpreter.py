"""Triton's interpreter, repaired where it is silently wrong or needs a GPU that is not there.

``repair`` is called once, in a process that imported triton with ``TRITON_INTERPRET=1`` and before any candidate is
imported. What it changes, each because it was seen to fail:

- bfloat16 is kept as float32 numbers rounded to bfloat16 after every operation (the interpreter keeps the raw bits in
  uint16 and computes with those as if they were integers);
- libdevice functions are evaluated by torch (the interpreter has none);
- a driver that answers what autotuning and launch heuristics ask for; an autotuner takes its first configuration;
- CUDA-only calls of a launcher (``x.is_cuda``, ``.cuda()``, ``device="cuda"``) mean the CPU.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

#: what the pretended GPU, an H100, answers
PROPERTIES = {
    "max_shared_mem": 232448,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "max_num_regs": 65536,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 2619000,
    "mem_bus_width": 5120,
}
#: compute capability of the pretended GPU
CAPABILITY = 90

#: autotuned kernels of which only the first configuration was run
autotuned: set[str] = set()


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
        return self.target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0)

    def clear_cache(self, cache: Any) -> None:
        pass

    def map_python_to_cpp_type(self, name: str) -> str:
        return name

    def get_benchmarker(self) -> Callable[..., Any]:
        def benchmark(fn: Callable[[], Any], quantiles: Any = None, **_: Any) -> Any:
            fn()
            return [1.0] * len(quantiles) if quantiles else 1.0

        return benchmark


def repair() -> None:
    """Make the interpreter of this process fit to judge by."""
    import triton
    from triton.runtime import driver, interpreter

    np.seterr(all="ignore")  # overflow to infinity is what the hardware does, too
    driver.set_active(PretendedDriver())
    _repair_bfloat16(triton.language, interpreter)
    _repair_libdevice(triton.language, interpreter)
    first_configuration_only()


def first_configuration_only() -> None:
    """An autotuner without a GPU has nothing to measure: it takes its first configuration, and is remembered for that."""
    from triton.runtime.autotuner import Autotuner

    run = Autotuner.run

    def run_first(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(self.configs) > 1:
            autotuned.add(getattr(self.base_fn, "__name__", "kernel"))
            self.configs = self.configs[:1]
        return run(self, *args, **kwargs)

    Autotuner.run = run_first


@contextlib.contextmanager
def cuda_answers() -> Any:
    """What a launcher may ask of ``torch.cuda`` is answered as an H100 would."""
    properties = types.SimpleNamespace(
        name="NVIDIA H100 80GB HBM3",
        multi_processor_count=PROPERTIES["multiprocessor_count"],
        major=CAPABILITY // 10,
        minor=CAPABILITY % 10,
        total_memory=80 << 30,
        warp_size=32,
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
    with cuda_answers(), replaced((torch.Tensor, "is_cuda", property(lambda self: True))), _OnTheCpu():
        yield


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
    """Attributes set for a while; those that were inherited are inherited again after."""
    kept = [(owner, name, owner.__dict__.get(name)) for owner, name, _ in attributes]
    for owner, name, value in attributes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _is_cuda(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and device.split(":")[0] == "cuda"


def round_to_bfloat16(numbers: np.ndarray) -> np.ndarray:
    """Float32 numbers rounded to the nearest bfloat16, ties to even; still float32. NaN stays NaN."""
    return bits_to_float(float_to_bits(numbers))


def float_to_bits(numbers: np.ndarray) -> np.ndarray:
    """The bfloat16 bit patterns (uint16) of numbers, rounded to nearest even."""
    single = np.ascontiguousarray(numbers, dtype=np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7FC0), rounded).reshape(numbers.shape)


def bits_to_float(bits: np.ndarray) -> np.ndarray:
    """The float32 numbers that bfloat16 bit patterns (uint16) stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32).reshape(bits.shape)


def _repair_bfloat16(tl: Any, interpreter: Any) -> None:
    """Keep bfloat16 as rounded float32; only loads, stores and bit casts see the 16 bits."""
    handle, builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
    bf16 = tl.bfloat16

    def is_bf16(dtype: Any) -> bool:
        return getattr(dtype, "scalar", dtype) == bf16

    np_dtype, fits, finish = interpreter._get_np_dtype, interpreter._validate_np_data_size, handle.__post_init__

    def get_np_dtype(dtype: Any) -> np.dtype:
        is_pointer = isinstance(getattr(dtype, "element_ty", dtype), tl.pointer_type) or dtype.is_ptr()
        return np.dtype(np.float32) if not is_pointer and is_bf16(dtype) else np_dtype(dtype)

    def post_init(self: Any) -> None:
        if not isinstance(self.dtype, tl.pointer_type) and is_bf16(self.dtype):
            if self.data.dtype == np.uint16:
                self.data = bits_to_float(self.data)
            elif self.data.dtype.kind == "f":
                self.data = round_to_bfloat16(self.data)
        else:
            finish(self)

    interpreter._get_np_dtype = get_np_dtype
    interpreter._validate_np_data_size = lambda data, dtype: (
        True if not isinstance(dtype, tl.pointer_type) and is_bf16(dtype) else fits(data, dtype)
    )
    handle.__post_init__ = post_init

    def replaces(name: str) -> Callable[[Any], None]:
        def put(make: Any) -> None:
            setattr(builder, name, make(getattr(builder, name, None)))

        return put

    @replaces("create_masked_load")
    def _(original: Any) -> Any:
        def load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **kwargs: Any) -> Any:
            if not is_bf16(ptrs.get_element_ty()):
                return original(self, ptrs, mask, other, *rest, **kwargs)
            data = np.zeros(ptrs.data.shape, np.uint16) if other is None else float_to_bits(other.data)
            loaded = interpreter._interpreter.load(ptrs.data, mask.data, data, np.dtype(np.uint16))
            return handle(loaded, bf16)

        return load

    @replaces("create_masked_store")
    def _(original: Any) -> Any:
        def store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **kwargs: Any) -> Any:
            if is_bf16(ptrs.get_element_ty()) and value.data.dtype != np.uint16:
                return interpreter._interpreter.store(ptrs.data, float_to_bits(value.data), mask.data)
            return original(self, ptrs, value, mask, *rest, **kwargs)

        return store

    @replaces("cast_impl")
    def _(original: Any) -> Any:
        def cast(self: Any, src: Any, dst_type: Any) -> Any:
            if is_bf16(src.dtype) or is_bf16(dst_type):
                return handle(src.data.astype(get_np_dtype(dst_type.scalar)), dst_type.scalar)
            return original(self, src, dst_type)

        return cast

    @replaces("create_fp_to_fp")
    def _(original: Any) -> Any:
        def fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
            if is_bf16(src.dtype):
                src = handle(src.data, tl.float32)
            if src.dtype.scalar == dst_type.scalar:
                return src
            if is_bf16(dst_type):
                wide = src if src.dtype.scalar == tl.float32 else original(self, src, tl.float32, rounding_mode)
                return handle(wide.data, bf16)
            return original(self, src, dst_type, rounding_mode)

        return fp_to_fp

    @replaces("create_bitcast")
    def _(original: Any) -> Any:
        def bitcast(self: Any, src: Any, dst_type: Any) -> Any:
            if is_bf16(src.dtype) and not isinstance(src.dtype, tl.pointer_type):
                src = handle(float_to_bits(src.data), tl.uint16)
            if is_bf16(dst_type) and not isinstance(dst_type, tl.pointer_type):
                return handle(src.data.view(np.uint16), bf16)
            return original(self, src, dst_type)

        return bitcast

    @replaces("create_fabs")
    def _(original: Any) -> Any:
        return lambda self, arg: handle(np.abs(arg.data), bf16) if is_bf16(arg.dtype) else original(self, arg)

    @replaces("get_bf16")
    def _(original: Any) -> Any:
        return lambda self, value: handle(np.array([value], np.float32), bf16)

    @replaces("create_atomic_rmw")
    def _(original: Any) -> Any:
        def rmw(self: Any, op: Any, ptr: Any, val: Any, *rest: Any) -> Any:
            if is_bf16(ptr.get_element_ty()):
                raise NotImplementedError("bfloat16 atomics are not supported in interpreter mode")
            return original(self, op, ptr, val, *rest)

        return rmw


#: libdevice function → the torch function of that name, where the names differ
_LIBDEVICE = {
    "fast_expf": "exp",
    "fast_exp10f": "exp",
    "fast_logf": "log",
    "fast_log2f": "log2",
    "fast_log10f": "log10",
    "fast_sinf": "sin",
    "fast_cosf": "cos",
    "fast_tanf": "tan",
    "fast_powf": "pow",
    "fast_dividef": "div",
    "fast_tanhf": "tanh",
    "fabs": "abs",
    "tgamma": None,
    "rint": "round",
    "nearbyint": "round",
    "llrint": None,
    "isinf": "isinf",
    "isnan": "isnan",
    "finitef": "isfinite",
    "isfinited": "isfinite",
    "pow": "pow",
    "copysign": "copysign",
    "rcbrt": None,
    "j0": "special.bessel_j0",
    "j1": "special.bessel_j1",
    "erfcx": "special.erfcx",
    "erfinv": "erfinv",
    "cyl_bessel_i0": "special.i0",
    "cyl_bessel_i1": "special.i1",
    "normcdf": "special.ndtr",
    "normcdfinv": "special.ndtri",
    "lgamma": "lgamma",
    "saturatef": None,
    "div_rn": "div",
    "mul_rn": "mul",
    "add_rn": "add",
    "sub_rn": "sub",
    "rsqrt_rn": "rsqrt",
    "sqrt_rn": "sqrt",
    "fmod": "fmod",
    "fdim": None,
}


def _torch_function(name: str) -> Callable[..., torch.Tensor] | None:
    target = _LIBDEVICE.get(name, name)
    if target is None:
        return None
    found: Any = torch
    for part in target.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def _repair_libdevice(tl: Any, interpreter: Any) -> None:
    """Both ``triton.language.extra.libdevice`` and ``….cuda.libdevice``: a candidate may import either."""
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as cuda_libdevice

    def wrap(name: str, function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
        def evaluate(*args: Any, _semantic: Any = None, **_: Any) -> Any:
            semantic = _semantic or interpreter.interpreter_semantic
            tensors = [semantic.to_tensor(a) for a in args]
            arrays = np.broadcast_arrays(*(t.handle.data for t in tensors))
            out = function(*(torch.from_numpy(np.array(a)) for a in arrays)).numpy()
            largest = max(tensors, key=lambda t: t.handle.data.size)
            scalar = tl.int32 if out.dtype == np.bool_ else largest.dtype.scalar
            data = out.astype(interpreter._get_np_dtype(scalar)).reshape(arrays[0].shape)
            kind = tl.block_type(scalar, list(largest.shape)) if largest.type.is_block() else scalar
            return tl.core.tensor(interpreter.TensorHandle(data, scalar), kind)

        evaluate.__name__ = name
        return evaluate

    for module in (libdevice, cuda_libdevice):
        for name in [n for n in dir(module) if not n.startswith("_")]:
            value = getattr(module, name)
            function = _torch_function(name)
            if callable(value) and function is not None and getattr(value, "__module__", "").startswith("triton"):
                setattr(module, name, wrap(name, function))

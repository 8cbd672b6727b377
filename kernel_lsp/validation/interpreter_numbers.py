"""Number formats and functions that Triton's interpreter has wrong or not at all: bfloat16, float8, what a comparison gives, libdevice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes


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


def repair_bfloat16(tl: Any, interpreter: Any) -> None:
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


def repair_float8(tl: Any, interpreter: Any) -> None:
    """Conversions to and from float8 by torch: the interpreter's lose the carry when rounding. They saturate, as a GPU's."""
    convert = interpreter._convert_float
    kinds = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}
    numbers = {tl.float16: np.float16, tl.float32: np.float32}

    def convert_float(data: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
        with _disable_current_modes():
            return by_torch(data, source, target, rounding)

    def by_torch(data: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
        if source in kinds and target in numbers:
            eight = torch.from_numpy(np.ascontiguousarray(data).view(np.uint8)).view(kinds[source])
            return eight.float().numpy().astype(numbers[target]).reshape(data.shape)
        if target in kinds and source in numbers:
            most = torch.finfo(kinds[target]).max
            wide = torch.from_numpy(np.array(data).view(numbers[source]).astype(np.float32))
            return wide.clamp(-most, most).to(kinds[target]).view(torch.uint8).numpy().reshape(data.shape)
        return convert(data, source, target, rounding)

    interpreter._convert_float = convert_float


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
    "y0": "special.bessel_y0",
    "y1": "special.bessel_y1",
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


def repair_comparisons(tl: Any, interpreter: Any) -> None:
    """What a comparison gives is a bool; the interpreter calls it what its operands are, and so widens a scalar one."""
    builder = interpreter.InterpreterBuilder
    compute = builder.binary_op

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        result = compute(self, lhs, rhs, op)
        return interpreter.TensorHandle(result.data, tl.int1) if result.data.dtype == np.bool_ else result

    builder.binary_op = binary_op


def _torch_function(name: str) -> Callable[..., torch.Tensor] | None:
    target = _LIBDEVICE.get(name, name)
    if target is None:
        return None
    found: Any = torch
    for part in target.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def repair_libdevice(tl: Any, interpreter: Any) -> None:
    """Both ``triton.language.extra.libdevice`` and ``….cuda.libdevice``: a candidate may import either."""
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as cuda_libdevice

    def wrap(name: str, function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
        def evaluate(*args: Any, _semantic: Any = None, **_: Any) -> Any:
            semantic = _semantic or interpreter.interpreter_semantic
            tensors = [semantic.to_tensor(a) for a in args]
            arrays = np.broadcast_arrays(*(t.handle.data for t in tensors))
            with _disable_current_modes():  # it stands for the GPU's function: no operator that the candidate runs
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

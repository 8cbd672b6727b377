"""What a candidate's launches become on a GPU that is not here: registers, spills, shared memory, compile errors.

The launcher is run on the example's full sizes; every launch is compiled as it would be on a GPU (signature,
constants, divisibility), and not run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import attributes, failures, interpreter, precompiling

#: seconds after which no further kernel is compiled
SECONDS = 40.0


#: makes an instance of the candidate's class; then the arguments of its forward
Example = tuple[Callable[[type], torch.nn.Module], Any, Any]


def report(
    path: str, class_name: str, source: str, examples: list[Callable[[], Example]], folder: str
) -> dict[str, Any]:
    """``{"kernels": [CompiledKernel], "error": {"reason", "line"} | None, "limits": [str]}`` for a candidate's file.

    Each of ``examples`` gives tensors that lend their shapes, dtypes and strides; the next is tried where one does
    not do. ``folder`` is for the compiler's files. The process is confined already.
    """
    from triton.runtime import driver

    driver.set_active(interpreter.PretendedDriver())
    interpreter.first_configuration_only()
    compiled: dict[str, Any] = {}
    _compile_instead_of_launching(compiled, time.monotonic() + SECONDS)
    answer: dict[str, Any] = {"kernels": [], "error": None, "limits": []}
    for example in examples:
        failure = _compile(path, class_name, source, example, compiled)
        if failure is not None and failure.status == "compile-error":
            answer["error"] = {"reason": failure.reason, "line": failure.line}
            break
        if failure is None and compiled:
            break
    else:
        if failure is not None:  # the launcher does something that fake tensors cannot: no verdict on the kernel
            said = f"a call without values fails: {failure.reason.rstrip('.')}"
            answer["limits"].append(f"not every launch could be compiled for sm_{interpreter.CAPABILITY} ({said})")
    answer["kernels"] = [schema.to_json(_described(name, kernel, folder)) for name, kernel in compiled.items()]
    if interpreter.autotuned:
        names = ", ".join(sorted(interpreter.autotuned))
        answer["limits"].append(f"only the first autotuning configuration of {names} was compiled")
    return answer


def _compile(
    path: str, class_name: str, source: str, example: Callable[[], Example], compiled: dict[str, Any]
) -> failures.Failure | None:
    """Fills ``compiled``; what went wrong, if anything did."""
    try:
        make, args, kwargs = example()
        _launch_on_the_cpu(path, class_name, make, args, kwargs, compiled)
        if not compiled:  # the launcher looks for CUDA tensors by name
            _launch_on_fakes(path, class_name, make, args, kwargs, compiled)
    except Exception as error:
        traceback.print_exc()
        return failures.classify(error, path, source)
    return None


def _imported(path: str, class_name: str) -> type:
    spec = importlib.util.spec_from_file_location("kernel_lsp_compiled", path)
    assert spec is not None and spec.loader is not None
    candidate = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = candidate
    spec.loader.exec_module(candidate)
    return getattr(candidate, class_name)


def _called(instance: Any, args: Any, kwargs: Any, compiled: dict[str, Any]) -> None:
    """Call it; once more where it launched nothing and has tensors in attributes by now, which its kernels may have waited for."""
    before = {path: id(tensor) for path, tensor in attributes.plain_tensors(instance).items()}
    instance(*args, **kwargs)
    after = attributes.plain_tensors(instance)
    if not compiled and any(id(tensor) != before.get(path) for path, tensor in after.items()):
        instance(*args, **kwargs)


def _launch_on_the_cpu(path: str, class_name: str, make: Any, args: Any, kwargs: Any, compiled: dict[str, Any]) -> None:
    """With the example itself: nothing is run, so the memory that the launcher allocates is never touched.

    The file is imported as under the interpreter, where a launcher is content with CPU tensors, but its kernels are
    made for the compiler.
    """
    with _interpreting_in_name_only():
        kind = _imported(path, class_name)
    with interpreter.pretending_cuda(), torch.no_grad(), precompiling.ZeroIntegers():
        _called(make(kind), args, kwargs, compiled)


@contextlib.contextmanager
def _interpreting_in_name_only() -> Any:
    import triton
    from triton.language.extra import libdevice
    from triton.runtime.jit import JITFunction

    def jit(fn: Any = None, **options: Any) -> Any:
        return JITFunction(fn, **options) if fn is not None else lambda fn: JITFunction(fn, **options)

    def known(x: float) -> float:  # a generated file asks whether there is libdevice, and would run eagerly without
        return x

    replacements = ((triton, "jit", jit), (libdevice, "tanh", known))
    with interpreter.replaced(*replacements), triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = True
        yield


def _launch_on_fakes(path: str, class_name: str, make: Any, args: Any, kwargs: Any, compiled: dict[str, Any]) -> None:
    """With fake CUDA tensors of the example's sizes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    instance = make(_imported(path, class_name))
    with interpreter.cuda_answers(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        for part in instance.modules():
            for store in (part._parameters, part._buffers):
                for name, tensor in store.items():
                    if tensor is not None:
                        fake = _like(tensor)
                        store[name] = torch.nn.Parameter(fake, False) if store is part._parameters else fake  # type: ignore[assignment]
        args, kwargs = pytree.tree_map(lambda t: _like(t) if isinstance(t, torch.Tensor) else t, (args, kwargs))
        _called(instance, args, kwargs, compiled)


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")


def _compile_instead_of_launching(compiled: dict[str, Any], until: float) -> None:
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if time.monotonic() > until:
            raise TimeoutError(f"compiling takes more than {SECONDS:.0f} s")
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        compiled.setdefault(self.__name__, kernel)
        return kernel

    JITFunction.run = compile_only  # type: ignore[method-assign]


def _described(name: str, kernel: Any, folder: str) -> schema.CompiledKernel:
    metadata = kernel.metadata
    found = schema.CompiledKernel(
        name=name,
        target=f"cuda:{interpreter.CAPABILITY}",
        shared=getattr(metadata, "shared", None),
        num_warps=getattr(metadata, "num_warps", None),
    )
    if "cubin" in kernel.asm:
        found.registers, found.spills = resources(kernel.asm["cubin"], folder)
    return found


def resources(cubin: bytes, folder: str) -> tuple[int | None, int | None]:
    """(registers, bytes of local memory) per thread, from the cuobjdump that triton brings; (None, None) without it.

    Local memory is where spilled registers live; a Triton kernel puts nothing else there.
    """
    import triton

    tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")
    if not os.path.exists(tool):
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin", dir=folder) as file:
        file.write(cubin)
        file.flush()
        try:
            out = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None, None
    numbers = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", out.stdout + out.stderr)}
    if "REG" not in numbers:
        return None, None
    return numbers["REG"], numbers.get("STACK", 0) + numbers.get("LOCAL", 0)

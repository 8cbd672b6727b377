"""What this interpreter has: versions, GPUs and what is missing, found with the standard library alone.

Nothing of torch is imported here, so ``hello`` is answered at once also where torch is broken, missing or slow
to import, and the process that answers stays small.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_lsp import errors, nvml, schema
from kernel_lsp.confinement import layers

#: package → (least version, what pip installs)
NEEDED = {
    "torch": ((2, 11), "torch>=2.11,<2.14"),
    "triton": ((3, 6), "triton>=3.6,<3.8"),
    "numpy": ((1, 26), "numpy"),
}
LEAST_PYTHON = (3, 11)


def _folder(package: str) -> Path | None:
    """Where a package is, without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _assigned(text: str, name: str) -> str:
    """The string literal assigned to a module-level ``name``, or ""."""
    found = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found.group(1) if found else ""


def version_of(package: str) -> str:
    """The version of an installed package from its own files, or "" where there is none."""
    folder = _folder(package)
    if folder is None:
        return ""
    for file, name in (("version.py", "__version__"), ("version.py", "version"), ("__init__.py", "__version__")):
        try:
            found = _assigned((folder / file).read_text("utf-8"), name)
        except OSError:
            continue
        if found:
            return found
    return "unknown"


def _cuda_build() -> str:
    """The CUDA version that torch was built for, or ""."""
    folder = _folder("torch")
    try:
        return _assigned((folder / "version.py").read_text("utf-8"), "cuda") if folder else ""
    except OSError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version.split("+")[0])[:2])


def problems() -> list[errors.UserError]:
    """Why this interpreter cannot be used; empty when it can."""
    found: list[errors.UserError] = []
    interpreter = sys.executable or "python3"
    if sys.version_info[:2] < LEAST_PYTHON:
        found.append(
            errors.PackageTooOld(
                interpreter=interpreter,
                package="Python",
                version=platform.python_version(),
                needed="3.11 or newer",
                command="uv venv --python 3.12, or your system's package manager",
            )
        )
    for package, (least, requirement) in NEEDED.items():
        version = version_of(package)
        command = f"{interpreter} -m pip install '{requirement}'"
        if not version:
            found.append(errors.PackageMissing(interpreter=interpreter, package=package, command=command))
        elif _numbers(version) and _numbers(version) < least:
            needed = f"{'.'.join(map(str, least))} or newer"
            found.append(
                errors.PackageTooOld(
                    interpreter=interpreter, package=package, version=version, needed=needed, command=command
                )
            )
    return found


def hello(devices: list[schema.Device], confinement: layers.Layers) -> dict[str, Any]:
    """The answer to ``hello``."""
    return {
        "interpreter": sys.executable,
        "python": platform.python_version(),
        "torch": version_of("torch"),
        "triton": version_of("triton"),
        "numpy": version_of("numpy"),
        "devices": [schema.to_json(d) for d in devices],
        "problems": [p.to_json() for p in problems()],
        "confinement": [asdict(finding) for finding in layers.findings(confinement)],
    }


def interpreter_device() -> schema.Device:
    """The device of last resort: Triton's interpreter on the CPU."""
    return schema.Device(
        name="Triton interpreter (CPU)",
        kind="interpreter",
        python=platform.python_version(),
        torch=version_of("torch"),
        triton=version_of("triton"),
    )


def cuda_devices() -> list[schema.Device]:
    """The NVIDIA GPUs that CUDA would see, asked of NVML: no CUDA context is made. Run it in a child: drivers hang."""
    if not _cuda_build():
        return []
    library = nvml.load()
    if library is None:
        return []
    text = ctypes.create_string_buffer(96)
    library.nvmlSystemGetDriverVersion(text, 96)
    driver = text.value.decode()
    named = [(one.text("nvmlDeviceGetUUID"), one) for one in nvml.gpus(library)]
    devices = []
    for one in _visible(named, os.environ.get("CUDA_VISIBLE_DEVICES")):
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvmlDeviceGetCudaComputeCapability(one.handle, ctypes.byref(major), ctypes.byref(minor))
        devices.append(
            schema.Device(
                name=one.text("nvmlDeviceGetName"),
                kind="cuda",
                capability=f"{major.value}.{minor.value}",
                python=platform.python_version(),
                torch=version_of("torch"),
                triton=version_of("triton"),
                driver=driver,
                memory=one.memory_total() or None,
            )
        )
    return devices


def _visible(handles: list[tuple[str, Any]], wanted: str | None) -> list[Any]:
    """The handles that ``CUDA_VISIBLE_DEVICES`` leaves, in its order: indices or UUID prefixes; stops at an unknown one."""
    if wanted is None:
        return [handle for _, handle in handles]
    chosen = []
    for word in (w.strip() for w in wanted.split(",")):
        if word.isdigit() and int(word) < len(handles):
            chosen.append(handles[int(word)][1])
        elif match := [h for uuid, h in handles if word and uuid.startswith(word)]:
            chosen.append(match[0])
        elif word.startswith("MIG-") and handles:
            chosen.append(handles[0][1])  # NVML lists a slice under its GPU
        else:
            break
    return chosen

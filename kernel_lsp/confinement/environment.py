"""The environment of a candidate's process: what torch, triton, CUDA and the compiler look for, and nothing else."""

from __future__ import annotations

import ctypes
import os
import re

_NAMES = {
    *("PATH", "LANG", "LANGUAGE", "TZ", "CC", "CXX", "CFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("LIBRARY_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME"),
    *("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "SYSTEMROOT", "GCC_EXEC_PREFIX", "COMPILER_PATH", "TERM"),
}
_BEGINNINGS = (
    *("LC_", "CUDA", "CUDNN", "CUBLAS", "NVIDIA_", "NV_", "NCCL_", "TRITON_", "TORCH", "PYTORCH", "INDUCTOR_", "OMP_"),
    *(
        "MKL_",
        "KMP_",
        "GOMP_",
        "OPENBLAS_",
        "BLIS_",
        "VECLIB_",
        "NUMEXPR_",
        "HIP_",
        "ROCR_",
        "ROCM_",
        "HSA_",
        "MALLOC_",
    ),
    *("NIX_", "AMD_"),
)
#: what a user's program has beside these; no library looks for it
_OF_A_SESSION = ("USER", "LOGNAME", "SHELL", "SHLVL", "HOSTNAME", "PWD")
#: what the worker sets for itself, and folders that a confined process may not write in
_OF_THE_WORKER = (
    *("PYTORCH_NVML_BASED_CUDA_CHECK", "OPENBLAS_NUM_THREADS", "TRITON_CACHE_DIR", "TRITON_HOME"),
    *("TORCHINDUCTOR_COMPILE_THREADS", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR"),
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE|AUTH", re.IGNORECASE)


def kept(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that a candidate's process gets."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _NAMES or name.startswith(_BEGINNINGS)) and not _SECRET.search(name)
    }


def usual(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that a program of the user's would have, too: nothing in it tells of a validation."""
    found = {name: value for name, value in kept(environment).items() if name not in _OF_THE_WORKER}
    return found | {name: environment[name] for name in _OF_A_SESSION if name in environment}


def scrub(wanted: dict[str, str]) -> None:
    """Leave this process the variables ``wanted``; what it was started with is overwritten in its memory."""
    for name in list(os.environ):
        if name not in wanted:
            del os.environ[name]
    for name, value in wanted.items():
        os.environ[name] = value  # into memory of its own, also what stays as it is
    _overwrite(_ENVIRONMENT, b"")


def rename(command: list[str]) -> None:
    """Have the system show another command line for this process, as far as the one that it was started with has room."""
    _overwrite(_COMMAND, b"\0".join(map(os.fsencode, command)))


#: where /proc/self/stat says that these begin and end, counted from the state (fields 48 to 51 of the line)
_COMMAND, _ENVIRONMENT = 45, 47


def _overwrite(field: int, data: bytes) -> None:
    """Put ``data`` and zeros in place of what the process was started with."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        begin, end = int(fields[field]), int(fields[field + 1])
    except (OSError, ValueError, IndexError):
        return
    if 0 < begin < end:
        data = data[: end - begin - 1]
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, data, len(data))

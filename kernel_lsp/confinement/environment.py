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
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE|AUTH", re.IGNORECASE)


def kept(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that a candidate's process gets."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _NAMES or name.startswith(_BEGINNINGS)) and not _SECRET.search(name)
    }


def scrub(also: dict[str, str]) -> None:
    """Leave this process ``kept`` and ``also``; what it was started with is overwritten in its memory."""
    wanted = kept(dict(os.environ)) | also
    for name in list(os.environ):
        if name not in wanted:
            del os.environ[name]
    for name, value in wanted.items():
        os.environ[name] = value  # into memory of its own, also what stays as it is
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        begin, end = int(fields[47]), int(fields[48])  # env_start and env_end, fields 50 and 51 of the line
    except (OSError, ValueError, IndexError):
        return
    if 0 < begin < end:
        ctypes.memset(begin, 0, end - begin)

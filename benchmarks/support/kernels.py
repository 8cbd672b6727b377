"""Kernel files as modules that share the state of the module they stand in for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torch import nn


def loaded(path: Path, module: nn.Module) -> nn.Module:
    """The kernel class of a generated file, with ``module``'s parameters, buffers and settings."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    kernel: nn.Module = object.__new__(getattr(file, f"{type(module).__name__}Triton"))
    kernel.__dict__ = dict(module.__dict__)
    return kernel


def written(source: str, folder: Path, module: nn.Module) -> nn.Module:
    """The same for a text, which becomes a file of its own in ``folder``."""
    path = folder / f"kernel_{len(list(folder.iterdir()))}.py"
    path.write_text(source)
    return loaded(path, module)

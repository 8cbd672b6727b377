"""Whether this process is recorded, and the wait for its ``import torch``."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

VARIABLE = "KERNEL_LSP_RECORD"  # JSON: {"folder", "root", "classes"}
#: what launchers call the rank among all processes, the most specific first
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def start() -> None:
    """Have the calls recorded once torch is imported, if this process is to be recorded."""
    text = os.environ.get(VARIABLE)
    if not text or not _first_rank():
        return
    config = json.loads(text)
    # A process without torch leaves this file: that the program ran Python at all.
    with open(os.path.join(config["folder"], "seen"), "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    sys.meta_path.insert(0, _Waiting(config))


def _first_rank() -> bool:
    rank = next((os.environ[name] for name in RANKS if os.environ.get(name)), "0")
    return rank == "0"


class _Waiting(importlib.abc.MetaPathFinder):
    """Finds torch as Python does, and starts the recording when torch has been imported whole."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_record(module: ModuleType) -> None:
            run(module)
            try:
                from . import calls

                calls.install(self.config)
            except Exception as error:
                print(f"kernel-lsp record: nothing is recorded in this process: {error!r}", file=sys.stderr)

        spec.loader.exec_module = run_and_record  # type: ignore[method-assign]
        return spec

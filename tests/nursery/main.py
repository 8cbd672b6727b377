"""The worker's main, whose zygotes come from the nursery (see __init__.py); ``--nursery FOLDER`` is the nursery itself."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_PACKAGE = _HERE.parents[1] / "kernel_lsp"


def main() -> None:
    startup = runpy.run_path(str(_PACKAGE / "startup.py"))
    startup["register_package"](__file__)
    requests, answers = startup["take_over_standard_streams"]()
    from kernel_lsp import child_processes
    from kernel_lsp.worker import manager, zygote

    warm = runpy.run_path(str(_HERE / "warm.py"))
    if "--nursery" in sys.argv:
        place = sys.argv.pop()
        del sys.argv[1:]
        warm["serve"](place)
        return
    place = os.environ.pop("KERNEL_LSP_TESTS_NURSERY", "")  # nothing in the worker is to see it
    if "--give-way" in sys.argv[1:]:
        child_processes.let_others_first()
    zygote._main = warm["instead_of"](zygote._main, place, __file__)
    manager.run(requests, answers)


if __name__ == "__main__":
    main()

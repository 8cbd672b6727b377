"""Imported by Python at its start: begins recording, then gives way to the user's own ``sitecustomize``.

The standard library alone, and nothing of kernel_lsp by name: the program's Python need not have it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_HOOK = os.path.join(os.path.dirname(_HERE), "hook")
_NAME = "_kernel_lsp_recording_hook"  # a name that no module of the user's has


def _begin() -> None:
    spec = importlib.util.spec_from_file_location(
        _NAME, os.path.join(_HOOK, "__init__.py"), submodule_search_locations=[_HOOK]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{_NAME}.starting").start()


def _give_way() -> None:
    """Import the next ``sitecustomize`` on the path, as Python would have without this folder."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)  # the import of this file ends by looking itself up


try:
    _begin()
except Exception as _error:  # the user's program comes first
    print(f"kernel-lsp record: nothing is recorded in this process: {_error!r}", file=sys.stderr)
_give_way()

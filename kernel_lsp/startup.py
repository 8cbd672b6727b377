"""How a process that is started by its path begins: the package registered, the standard streams taken over.

The worker and the model host are started as ``[*prefix, interpreter, …/__main__.py]``, not with ``-m``: so nothing of
the environment that the server lives in has to be on that interpreter's path, and nothing but ``kernel_lsp`` gets there.
Their ``__main__`` files run this file by its path (``runpy.run_path``), since ``kernel_lsp`` cannot be imported yet.
"""

import os
import sys


def register_package(main: "str | None" = None) -> None:
    """Make ``import kernel_lsp`` find the package this file is in, and only that; no folder is added to ``sys.path``.

    ``main`` is the file that was started: Python put its folder first, where a user's "import memory" must not
    find ours.
    """
    import importlib.util

    package = os.path.dirname(os.path.abspath(__file__))
    if main is not None:
        here = os.path.dirname(os.path.abspath(main))
        sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    if "kernel_lsp" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "kernel_lsp", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_lsp"] = module
    spec.loader.exec_module(module)


def take_over_standard_streams() -> "tuple[int, int]":
    """The protocol's own (input, output) descriptors; descriptor 0 becomes empty and 1 goes to standard error.

    So whatever a user's module, or a library, prints or reads cannot touch the protocol.
    """
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers

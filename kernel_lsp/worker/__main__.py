"""The worker process: started by its path in the user's interpreter, spoken to over standard input and output.

It is started as ``[*prefix, interpreter, …/kernel_lsp/worker/__main__.py]``, not with ``-m``: so nothing of the
environment that the server lives in has to be on this interpreter's path, and nothing but ``kernel_lsp`` gets there.
"""

import os
import sys


def register_package() -> None:
    """Make ``import kernel_lsp`` find the package this file is in, and only that; no folder is added to ``sys.path``."""
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(here)
    # Python put this file's folder first: a user's "import processes" must not find ours.
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

    So whatever a user's module prints, or reads, cannot touch the protocol.
    """
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def main() -> None:
    register_package()
    requests, answers = take_over_standard_streams()
    from kernel_lsp.worker import manager

    manager.run(requests, answers)


if __name__ == "__main__":
    main()

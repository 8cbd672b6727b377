"""A user's file, imported under its proper dotted name, and the class in it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType

from kernel_lsp import errors
from kernel_lsp.worker import faults


def dotted_name(path: str) -> tuple[str, str]:
    """(folder that belongs on ``sys.path``, dotted module name): walks up while there is an ``__init__.py``."""
    folder, file = os.path.split(os.path.abspath(path))
    parts = [os.path.splitext(file)[0]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return folder, ".".join(parts)


def check_source(path: str, class_name: str) -> None:
    """What can be said without importing. Raises NotSavedYet, SyntaxInvalid, ClassDefinedTwice."""
    if not os.path.exists(path):
        raise errors.NotSavedYet(path=path)
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise errors.SyntaxInvalid(path=path, line=line, detail=getattr(error, "msg", None) or str(error)) from None
    scope: list[ast.stmt] = tree.body
    for name in class_name.split("."):
        found = [node for node in scope if isinstance(node, ast.ClassDef) and node.name == name]
        if len(found) > 1:
            raise errors.ClassDefinedTwice(path=path, line=found[-1].lineno, class_name=class_name)
        if not found:
            return
        scope = found[0].body


def import_file(path: str) -> ModuleType:
    """The module in ``path``, freshly imported as ``package.….name`` with its package root on ``sys.path``.

    Raises ImportFailed with the line in ``path``, DeviceMissing-like device errors included: at import nothing is
    known of a class yet.
    """
    root, dotted = dotted_name(path)
    known = sys.modules.get(dotted)
    if known is not None:
        file = getattr(known, "__file__", None)
        if file and os.path.realpath(file) == os.path.realpath(path):
            return known
        detail = f"its name hides the module {dotted!r} that Python or torch has loaded already; rename the file"
        raise errors.ImportFailed(path=path, line=1, detail=detail)
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        parent = dotted.rpartition(".")[0]
        if parent:
            importlib.import_module(parent)
        if dotted in sys.modules:  # the package imports it by itself
            return sys.modules[dotted]
        spec = importlib.util.spec_from_file_location(dotted, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[dotted] = module
        spec.loader.exec_module(module)
        if parent:
            setattr(sys.modules[parent], dotted.rpartition(".")[2], module)
        return module
    except (Exception, SystemExit) as error:
        sys.modules.pop(dotted, None)
        traceback.print_exc()
        line = faults.line_in(path, error) or 1
        raise errors.ImportFailed(path=path, line=line, detail=faults.sentence(error)) from None


def find_class(module: ModuleType, path: str, class_name: str) -> type:
    """The (dotted) class in an imported module. Raises ClassNotFound, NotAModule."""
    import torch

    found: object = module
    for name in class_name.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, type):
        raise errors.ClassNotFound(path=path, class_name=class_name)
    if not issubclass(found, torch.nn.Module):
        raise errors.NotAModule(path=path, class_name=class_name)
    return found


def load(path: str, class_name: str) -> tuple[ModuleType, type]:
    """The imported module and the class. Raises what the functions above raise."""
    check_source(path, class_name)
    module = import_file(path)
    return module, find_class(module, path, class_name)


def import_from(cls: type, path: str, class_name: str) -> str:
    """The dotted module that a kernel file imports the class from: where it is defined, if ``path`` only imports it.

    A kernel for a class of a package then works wherever that package does. A class that has another name there, or
    is a function's own, is imported from ``path``'s module.
    """
    found: object = sys.modules.get(cls.__module__)
    for name in class_name.split("."):
        found = getattr(found, name, None)
    return cls.__module__ if found is cls else dotted_name(path)[1]

"""A user's file, imported under its proper name, and the class in it."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from kernel_lsp import errors
from kernel_lsp.specimen import faults, modules


def check_source(path: str, class_name: str) -> None:
    """What can be said without importing.

    Raises:
        NotSavedYet: the file is not there.
        SyntaxInvalid: it does not parse.
        ClassDefinedTwice: two statements define the class.
    """
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


class _Fresh(importlib.machinery.SourceFileLoader):
    """A file as it is now. Compiled code is kept with the file's size and the second of its last change: of two edits within a second the later might not be seen."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Raises, so that no compiled code is read or kept."""
        raise OSError(f"no compiled code is kept for {path}")


def import_file(path: str) -> ModuleType:
    """The module in ``path``, freshly imported as ``package.….name`` with its package root on ``sys.path``.

    Raises:
        ImportFailed: it raises; with the line in ``path``. Also for a device that is not here: at import nothing is known of a
            class yet.
    """
    root, dotted = modules.dotted_name(path)
    hidden = modules.hidden(path, root, dotted)
    loading = modules.loading_name(path)
    name = dotted if modules.importable(path) else loading
    known = sys.modules.get(name)
    if known is not None and modules.is_from(known, path):
        return known
    _add_folders(path, root, first=not hidden)
    try:
        parent = "" if hidden else name.rpartition(".")[0]
        if parent:
            importlib.import_module(parent)
        if name in sys.modules:  # the package imports it by itself
            return sys.modules[name]
        loader = _Fresh(name, path)
        spec = importlib.util.spec_from_loader(name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        # Under both names: a kernel file may have been written where the name was taken, or where it was not.
        sys.modules[name] = sys.modules[loading] = module
        loader.exec_module(module)
        if parent:
            setattr(sys.modules[parent], name.rpartition(".")[2], module)
        return module
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        sys.modules.pop(loading, None)
        traceback.print_exc()
        line = faults.line_in(path, error) or 1
        raise errors.ImportFailed(path=path, line=line, detail=faults.sentence(error)) from None


def _add_folders(path: str, root: str, first: bool) -> None:
    """Put the folders that the file's imports start from on ``sys.path``.

    The file's own comes first, as where Python runs it, unless the file hides a module that torch may yet import; the
    project's come last, so that they hide nothing.
    """
    project = modules.project_of(path)
    behind = [] if project is None else [project, os.path.join(project, "src")]
    if root not in sys.path:
        sys.path.insert(0 if first else len(sys.path), root)
    sys.path += [folder for folder in behind if folder not in sys.path and os.path.isdir(folder)]


def find_class(module: ModuleType, path: str, class_name: str) -> type:
    """The (dotted) class in an imported module.

    Raises:
        ClassNotFound: there is none of that name.
        NotAModule: it does not derive from ``torch.nn.Module``.
    """
    import torch

    found: object = module
    for name in class_name.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise errors.ClassNotFound(path=path, class_name=class_name)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise errors.NotAModule(path=path, class_name=class_name)
    return found


def load(path: str, class_name: str) -> tuple[ModuleType, type]:
    """The imported module and the class.

    Raises:
        UserError: what ``check_source``, ``import_file`` and ``find_class`` raise.
    """
    check_source(path, class_name)
    module = import_file(path)
    return module, find_class(module, path, class_name)


def import_from(cls: type, path: str, class_name: str) -> str:
    """The module that a kernel file gets the class from: where it is defined, if ``path`` only imports it.

    A kernel for a class of a package then works wherever that package does. A class that has another name there, or
    is a function's own, comes from ``path``'s module. That is named as ``import_file_of`` needs it.
    """
    if _is_elsewhere(cls, path, class_name):
        return cls.__module__
    return modules.dotted_name(path)[1] if modules.importable(path) else modules.loading_name(path)


def import_file_of(cls: type, path: str, class_name: str, kernel: str | None) -> str:
    """The file that the kernel file ``kernel`` loads ``import_from``'s module from; "" where an import statement does.

    Relative to the kernel's folder, so that both can be moved. ``kernel`` is None for ``kernels/`` beside ``path``.
    """
    if _is_elsewhere(cls, path, class_name) or modules.importable(path):
        return ""
    folder = os.path.dirname(kernel) if kernel else os.path.join(os.path.dirname(os.path.abspath(path)), "kernels")
    return os.path.relpath(os.path.abspath(path), folder).replace(os.sep, "/")


def _is_elsewhere(cls: type, path: str, class_name: str) -> bool:
    """Whether an import statement can get the class from another module than ``path``'s, where it is at home."""
    found: object = sys.modules.get(cls.__module__)
    if found is None or modules.is_from(found, path) or not modules.sayable(cls.__module__):
        return False
    for name in class_name.split("."):
        found = getattr(found, name, None)
    return found is cls

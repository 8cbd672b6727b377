"""What a candidate's syntax tree says before anything of it runs."""

from __future__ import annotations

import ast

#: modules that a kernel file has no use for, and that a candidate could cheat or harm with
_REFUSED_MODULES = {
    *("subprocess", "multiprocessing", "threading", "concurrent", "asyncio", "signal", "atexit", "pty", "_thread"),
    *("socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests"),
    *("ctypes", "_ctypes", "cffi", "mmap", "fcntl", "resource", "gc", "faulthandler", "tracemalloc"),
    *("pickle", "marshal", "shelve", "importlib", "runpy", "code", "codeop", "shutil", "tempfile"),
}
_REFUSED_NAMES = {"exec", "eval", "compile", "__import__", "open", "input", "breakpoint", "globals", "vars"}


def screen(source: str, class_name: str) -> tuple[str, int | None] | None:
    """(reason, 1-based line) to reject ``source`` for, or None: it parses, defines ``class_name`` and imports nothing odd.

    ``class_name`` is the name of the kernel's class, for instance ``RMSNormTriton``.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return f"it does not parse: {error.msg}", error.lineno
    except ValueError as error:
        return f"it does not parse: {error}", None
    if not any(isinstance(node, ast.ClassDef) and node.name == class_name for node in tree.body):
        return f"it defines no class {class_name}", None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in _REFUSED_MODULES:
                    return f"it imports {alias.name}, which a kernel file has no use for", node.lineno
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.split(".")[0] in _REFUSED_MODULES:
                return f"it imports {module}, which a kernel file has no use for", node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _REFUSED_NAMES:
            return f"it calls {node.func.id}(), which a kernel file has no use for", node.lineno
    return None

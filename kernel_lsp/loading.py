"""The lines of a kernel file that get the user's class: an import statement, or a function that loads its file by path.

An import statement can name ``rms_norm.py``, but neither ``19_ReLU.py`` nor ``types.py``, whose name Python's own module
has. The standard library alone: the synthesizer, the generators and the worker write and read these lines.
"""

from __future__ import annotations

import ast
import re

LOADER = "_load_module"

#: Kernel files that were written stay as they are: where this changes, ``without`` has to know the former text, too.
_TEXT = f'''def {LOADER}(file, name):
    """The module in ``file``, as seen from this folder: no import statement can name it.

    It is loaded once for all callers. Where ``file`` is not there, as while this file is validated
    in another folder, it is loaded already.
    """
    import importlib.machinery
    import importlib.util
    import os
    import sys
    import zlib

    path = os.path.abspath(os.path.join(os.path.dirname(__file__), file))
    module = sys.modules.get(name)
    if module is not None and os.path.exists(path) and not os.path.samefile(module.__file__, path):
        # It is a file of this name in another folder.
        name = f"{{name}}_{{zlib.crc32(os.fsencode(path)):08x}}"
        module = sys.modules.get(name)
    if module is None:
        loader = importlib.machinery.SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module'''


def import_lines(module: str, file: str, name: str, alias: str) -> list[str]:
    """The lines that bind ``name`` of a module to ``alias``.

    ``module``: its dotted name; where ``file``, its path relative to the kernel's folder, is not empty, the name that it
    is loaded under from there.
    """
    if not file:
        return [f"from {module} import {name}" + (f" as {alias}" if alias != name else "")]
    return [*_TEXT.split("\n"), "", "", f"{alias} = {LOADER}({_quoted(file)}, {_quoted(module)}).{name}"]


_TRIED = re.compile(
    r"^try:\n    from (?P<above>\.+[\w.]*) import \(?\s*(?P<names>\w+(?: as \w+)?),?\s*\)?\n"
    r"except ImportError:(?: +#[^\n]*)?\n    from (?P<plain>[\w.]+) import (?P=names)$",
    re.MULTILINE,
)


def from_both(body: str, module: str, folders: str) -> str:
    """``from blocks import Block`` so that it also finds the module where a program imports the kernel with the folders above.

    ``models.kernels.block_triton`` then takes ``models.blocks``, and ``kernels.block_triton`` takes ``blocks``: the module that the program
    has itself, so that there is one class. ``module``: a module's name, without packages. ``folders``: the way to its folder from that of
    the kernel, in the form ``..`` or ``../../src``. The body as it is where it has no such line, or there is no such way.
    """
    parts = [] if folders in ("", ".") else folders.split("/")
    up, down = parts.count(".."), [part for part in parts if part != ".."]
    if not module.isidentifier() or parts != [".."] * up + down or not all(part.isidentifier() for part in down):
        return body
    above = "." * (up + 1) + ".".join([*down, module])
    return re.sub(
        rf"^from {module} import (\w+(?: as \w+)?)$",
        lambda found: (
            f"try:\n    from {above} import {found[1]}\n"
            f"except ImportError:  # the folder of {module}.py is on sys.path\n    {found[0]}"
        ),
        body,
        count=1,
        flags=re.MULTILINE,
    )


def from_one(body: str) -> str:
    """``body`` with the plain import that ``from_both`` replaced."""
    return _TRIED.sub(lambda found: f"from {found['plain']} import {found['names']}", body, count=1)


def _quoted(text: str) -> str:
    """``text`` as Python, in the quotes that ruff would choose."""
    inside = repr(text)[1:-1]
    return f'"{inside}"' if '"' not in text and "'" not in text else repr(text)


def without(source: str, module: str) -> str:
    """``source`` with the lines that load ``module`` blank; as it is where they are not exactly as written above.

    For the screening of a candidate, which forbids the modules that loading takes: these lines can load nothing else.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    expected = ast.dump(ast.parse(_TEXT).body[0])
    loads = [node for node in tree.body if isinstance(node, ast.FunctionDef) and ast.dump(node) == expected]
    uses = [node for node in tree.body if isinstance(node, ast.Assign) and _loads(node.value, module)]
    mentions = [node for node in ast.walk(tree) if getattr(node, "id", getattr(node, "name", "")) == LOADER]
    if not (len(loads) == len(uses) == 1 and len(mentions) == 2):  # its definition and its use
        return source
    lines = source.split("\n")
    for node in (*loads, *uses):
        end = node.end_lineno or node.lineno
        lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(lines)


def _loads(value: ast.expr, module: str) -> bool:
    """Whether an expression is ``_load_module("…", module).Name``."""
    if not (isinstance(value, ast.Attribute) and isinstance(value.value, ast.Call)):
        return False
    call = value.value
    return (
        isinstance(call.func, ast.Name)
        and call.func.id == LOADER
        and not call.keywords
        and len(call.args) == 2
        and all(isinstance(argument, ast.Constant) and isinstance(argument.value, str) for argument in call.args)
        and isinstance(call.args[1], ast.Constant)
        and call.args[1].value == module
    )

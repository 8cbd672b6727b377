"""Which module a file is: the name that Python would import it by, and the one it is loaded under where it cannot."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import keyword
import os
import re
import sys
import unicodedata
from collections.abc import Iterator

#: what a project's folder holds
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def stem(path: str) -> str:
    """The file's name without ``.py``; Python runs files without it, too."""
    return os.path.basename(path).removesuffix(".py")


def dotted_name(path: str) -> tuple[str, str]:
    """(folder that belongs on ``sys.path``, dotted module name) for a file.

    Its package is what the folders with an ``__init__.py`` around it are; and those without one, as far as the file's
    own imports want them to be (``from .layers import Norm``; ``import net.layers`` below a folder ``net``).
    """
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    parts: list[str] = []
    while os.path.exists(os.path.join(folder, "__init__.py")) and "." not in os.path.basename(folder):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if stem(path) != "__init__" or not parts:
        parts.append(stem(path))
    packages = len(parts) - (stem(path) != "__init__")
    for _ in range(_further(path, folder, packages)):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, ".".join(parts)


def _further(path: str, folder: str, packages: int) -> int:
    """How many more of the folders above belong to the file's package, beyond ``packages`` with an ``__init__.py``."""
    level, names = _imports(path)
    above = list(_above(folder))
    project = project_of(path)
    inside = above.index(project) if project in above else 0  # so many folders up is where imports start from
    if inside and above[inside - 1] == os.path.join(project or "", "src"):
        inside -= 1
    missing = level - packages
    # Other files of the package may go up further than this one, so it is as long as it can be within the project.
    wanted = max(missing, inside) if missing > 0 else 0
    for name in names - {stem(path)}:
        own = next((i for i, each in enumerate(above[:inside]) if os.path.basename(each) == name), None)
        if own is not None and not _elsewhere(name, folder, above[own]):
            wanted = max(wanted, own + 1)
    wanted = min(wanted, len(above) - 1)
    named = [os.path.basename(each) for each in above[:wanted]]
    return wanted if all(name and "." not in name for name in named) else 0


def _elsewhere(name: str, folder: str, own: str) -> bool:
    """Whether ``import name`` finds something else than the folder ``own``: a neighbour, or what is installed."""
    if any(os.path.exists(os.path.join(folder, neighbour)) for neighbour in (name, f"{name}.py")):
        return True
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True
    return spec is not None and own not in map(os.path.abspath, spec.submodule_search_locations or [])


def _above(folder: str) -> Iterator[str]:
    """``folder`` and the folders around it, the nearest first."""
    while True:
        yield folder
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)


def project_of(path: str) -> str | None:
    """The nearest folder around a file that looks like a project's."""
    folders = _above(os.path.dirname(os.path.abspath(path)))
    return next((f for f in folders if any(os.path.exists(os.path.join(f, marker)) for marker in _MARKERS)), None)


def _imports(path: str) -> tuple[int, frozenset[str]]:
    """(how many dots its relative imports begin with at most, the first names of its absolute imports)."""
    try:
        stat = os.stat(path)
    except OSError:
        return 0, frozenset()
    return _imports_at(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=16)
def _imports_at(path: str, mtime_ns: int, size: int) -> tuple[int, frozenset[str]]:
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0, frozenset()
    level, names = 0, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            level = max(level, node.level)
    return level, frozenset(names)


def sayable(dotted: str) -> bool:
    """Whether ``from dotted import C`` parses, and means this name (Python's parser normalizes identifiers)."""
    return all(
        part.isidentifier() and not keyword.iskeyword(part) and unicodedata.normalize("NFKC", part) == part
        for part in dotted.split(".")
    )


def importable(path: str) -> bool:
    """Whether an import statement can name the file's module: not ``19_ReLU.py``, not ``types.py``."""
    root, dotted = dotted_name(path)
    return path.endswith(".py") and "." not in stem(path) and sayable(dotted) and not hidden(path, root, dotted)


def hidden(path: str, root: str, dotted: str) -> bool:
    """Whether another module goes by the file's name: one of the standard library, or one that torch has loaded."""
    top, _, rest = dotted.partition(".")
    known = sys.modules.get(top)
    if os.path.basename(path) != "__init__.py" and not rest:
        if top in sys.stdlib_module_names or top == "__main__":
            return True
        return known is not None and not is_from(known, path)
    folders = [os.path.realpath(folder) for folder in getattr(known, "__path__", [])]
    return known is not None and os.path.realpath(os.path.join(root, top)) not in folders


def is_from(module: object, path: str) -> bool:
    """Whether a loaded module is the file at ``path``."""
    file = getattr(module, "__file__", None)
    return bool(file) and os.path.realpath(str(file)) == os.path.realpath(path)


def loading_name(path: str) -> str:
    """The name under which a kernel file loads a module by its path; the same wherever the folder is moved.

    ``19_ReLU``: what ``importlib.import_module`` calls it, too, so that both share it. A file whose name another module
    may have, or one with a dot in it, gets one that no other module has: ``types_75ab90``.
    """
    _, dotted = dotted_name(path)
    name = os.path.basename(path)
    own = stem(path)
    if own == "__init__" and "." not in own and not dotted.endswith("__init__"):
        return dotted
    parent = dotted[: -len(own) - 1]
    if "." in own or not name.endswith(".py") or (not parent and sayable(own)):
        own = re.sub(r"\W", "_", own) + "_" + hashlib.sha256(os.fsencode(name)).hexdigest()[:6]
    return f"{parent}.{own}" if parent else own

"""Adapts a message to the surface on which it appears: settings and actions of an editor, or options of a command.

Messages are written for editors, since most of them come over the wire from a process that does not know where they will be
read. The command line says once which options it has; what names a setting names an option or a line of pyproject.toml then.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence

_SETTING = re.compile(r"kernelLsp\.([A-Za-z]+)(?:\.([A-Za-z]+))?")
_ACTION = re.compile(r" \(code action: [^)]*\)")
_OF_OPTION = {"generators": "generator"}  # the settings that an option of another name gives

#: where an editor has the log
LOG = "the log (VS Code: “Kernel LSP: Show Logs”; other editors: the log of the language server)"

_options: frozenset[str] | None = None
_folders: dict[str, str] = {}  # an editor's workspace folders, each with "/" at its end → what a path in it begins with


@contextlib.contextmanager
def command_line(options: Iterable[str]) -> Iterator[None]:
    """Meanwhile messages name ``options`` of the command that runs, and else settings as pyproject.toml has them."""
    global _options
    before, _options = _options, frozenset(options)
    try:
        yield
    finally:
        _options = before


def name_folders(folders: Iterable[str]) -> None:
    """Have messages name files of an editor's workspace from its folder on.

    Where there are several, a file's name begins with the folder's, and with as many of those above it as tell it from the others.
    """
    global _folders
    found = sorted({os.path.join(folder, "") for folder in folders} - {os.sep}, key=len, reverse=True)
    _folders = {folder: _distinct(folder, found) if len(found) > 1 else "" for folder in found}


def _distinct(folder: str, folders: Sequence[str]) -> str:
    """The shortest end of ``folder``, of whole names, that no other one of ``folders`` has. All end with "/"."""
    parts = folder.split(os.sep)
    ends = (os.sep.join(parts[start:]) for start in range(len(parts) - 2, 0, -1))
    others = [other for other in folders if other != folder]
    return next((end for end in ends if not any(other.endswith(os.sep + end) for other in others)), folder)


def adapted(text: str) -> str:
    """A message as its surface has it.

    On the command line it has the options of the command that runs in place of an editor's settings and actions, in an editor
    paths from the workspace folder on.
    """
    if _options is None:
        for folder, name in _folders.items():
            text = _named_from(folder, text, name)
        return text
    if "overwrite" in _options:
        text = text.replace("with overwriting confirmed", "with --overwrite")
    text = _shortened(text)
    text = text.replace(LOG, "what the same command prints with -v")
    text = text.replace(", or save the file if the class is new", "")  # a command reads what is saved
    return _SETTING.sub(_setting, _ACTION.sub("", text))


def _shortened(text: str) -> str:
    """``text`` with what lies below the current folder as a user there names it."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # it was removed
        return text
    return text if here == os.sep else _named_from(here, text)


def _named_from(folder: str, text: str, name: str = "") -> str:
    """``text`` with ``name`` in place of the folder at the beginning of paths.

    A program keeps its path: it may be part of a command to paste, and without a folder it would be looked for elsewhere.
    """

    def named(found: re.Match[str]) -> str:
        path = found[0].rstrip(".,:;)\"'”’")
        return found[0] if os.path.isfile(path) and os.access(path, os.X_OK) else name + found[1]

    return re.sub(rf"(?<![^\s(\"'“‘:,=]){re.escape(folder)}([^\s/]\S*)", named, text)


def _setting(found: re.Match[str]) -> str:
    name, inner = found[1], found[2]
    if inner is not None:
        return f"{_kebab(inner)} under [tool.kernel-lsp.{_kebab(name)}] in pyproject.toml"
    option = _OF_OPTION.get(name, _kebab(name).replace("-", "_"))
    if option in (_options or ()):
        return f"--{option.replace('_', '-')}"
    return f"{_kebab(name)} under [tool.kernel-lsp] in pyproject.toml"


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()

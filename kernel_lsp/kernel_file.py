"""The format of a generated file: a TOML header in comments (the form of PEP 723), then the body.

    # /// kernel-lsp
    # source = "samples/rms_norm.py::RMSNorm"
    # …
    # ///
    \"\"\"RMSNorm as one Triton kernel: …\"\"\"

Only this module knows the format, which file is that of a class, and how it is written without losing anything.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import atomic_write, claims, kernel_names, speedup
from kernel_lsp.code_hash import code_hash
from kernel_lsp.errors import FileNotWritten, KernelFileEdited, KernelFileNotOurs, NotAKernelFile, SourceMissing

OPENING = "# /// kernel-lsp"
CLOSING = "# ///"
_LINE = 110  # columns of a line in the header
_HEAD_BYTES = 4096  # enough to see the opening line


@dataclass(frozen=True)
class KernelFile:
    """A parsed kernel file. ``body_line`` is the number of lines before the body (to map a line of one to the other)."""

    header: dict[str, Any]
    body: str
    body_line: int

    @property
    def edited(self) -> bool:
        """Whether the body is no longer the one that was written. Formatting it is no edit."""
        return self.header.get("body") != self.actual_body and not self._formatted

    @property
    def source(self) -> str:
        """Where the class is: ``"samples/rms_norm.py::RMSNorm"``, relative to a folder above the kernel file."""
        return str(self.header.get("source", ""))

    @property
    def source_file(self) -> str:
        """The file of ``source``. A file's name may have ``::`` in it, a class's may not."""
        file, separator, _ = self.source.rpartition("::")
        return file if separator else self.source

    @property
    def class_name(self) -> str:
        """The user's class, "" where the header does not say."""
        return str(self.header.get("class", ""))

    @property
    def fingerprint(self) -> str:
        """Of the class when the kernel was written, "" where the header does not say."""
        return str(self.header.get("fingerprint", ""))

    @property
    def generator(self) -> str:
        """Where the kernel came from, "" where the header does not say."""
        return str(self.header.get("generator", ""))

    @property
    def precision(self) -> str:
        """The setting that it was asked for with, and is validated under; a text that is no such setting counts as strict."""
        return text if (text := self.header.get("precision")) in speedup.PRECISIONS else "strict"

    @functools.cached_property
    def _formatted(self) -> bool:
        """Whether the body is what was written, comments included, in another layout."""
        written = self.header.get("code")
        return bool(written) and written == code_hash(_unix(self.body))

    @functools.cached_property
    def actual_body(self) -> str:
        """The hash of the body as it is, whatever the header says."""
        return body_hash(self.body)

    @functools.cached_property
    def claim(self) -> claims.Claim | None:
        """What the header says was found out; nothing that this machine vouches for."""
        return claims.read(self.header)


def find_kernel(source_path: Path, class_name: str, folder: str = "kernels") -> Path:
    """The kernel file of a class: the one that is there, else where it is to be written.

    A name that another file has is passed over, be it the kernel of another class or no kernel file. Where all names are taken it is
    the last one: ``may_write`` says whether that file may be replaced.
    """
    if (found := existing(source_path, class_name, folder)) is not None:
        return found[0]
    names = kernel_names.paths(_absolute(source_path), class_name, folder)
    return next((path for path in names if not os.path.exists(path)), names[-1])


def existing(
    source_path: Path,
    class_name: str,
    folder: str = "kernels",
    read_one: Callable[[Path], KernelFile | None] | None = None,
) -> tuple[Path, KernelFile] | None:
    """The kernel file of a class, under whichever of its names it is. ``read_one``: None where a path has no kernel file."""
    source_path = _absolute(source_path)
    former = kernel_names.former_paths(source_path, class_name, folder)
    for path in dict.fromkeys((*former, *kernel_names.paths(source_path, class_name, folder))):
        parsed = (read_one or _read_one)(path)
        if parsed is not None and is_of(path, parsed, source_path, class_name, folder):
            return path, parsed
    return None


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _read_one(path: Path) -> KernelFile | None:
    if not looks_like(path):
        return None
    try:
        return read(path)
    except NotAKernelFile:
        return None


def is_of(kernel: Path, parsed: KernelFile, source_path: Path, class_name: str, folder: str = "kernels") -> bool:
    """Whether a kernel file is the one of this class in this file, as its header says.

    A header that was moved with its folder names a place where the source no longer is, or, in a copy, the original. There
    the source's name counts, with the folder in which its kernels are.
    """
    if parsed.class_name != class_name:
        return False
    here = os.path.realpath(kernel_names.home(source_path, folder)) == os.path.realpath(kernel.parent)
    try:
        found = find_source(kernel, parsed)
    except SourceMissing:
        name = parsed.source_file.rpartition("/")[2]
        return here and name == source_path.name and not kernel_names.is_shared(source_path, folder)
    if os.path.realpath(found) == os.path.realpath(source_path):
        return True
    original = os.path.realpath(kernel_names.home(found, folder)) != os.path.realpath(kernel.parent)
    return here and original and found.name == source_path.name


def body_hash(body: str) -> str:
    """What tells whether a body was edited. Line ends do not count: git changes them on some machines."""
    return "sha256:" + hashlib.sha256(_unix(body).encode("utf-8", "surrogatepass")).hexdigest()


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def assemble(header: dict[str, Any], body: str) -> str:
    """The text of a kernel file. ``body``'s hashes are added to the header; None values are left out (TOML has none)."""
    hashes = {"body": body_hash(body), "code": code_hash(_unix(body)) or None}
    return "\n".join([*header_lines(header | hashes), body])


def header_lines(header: dict[str, Any]) -> list[str]:
    """The lines of a header, with the opening and the closing one."""
    return [OPENING, *(f"# {line}".rstrip() for line in _toml(header)), CLOSING]


def _toml(table: dict[str, Any]) -> list[str]:
    """A table as lines of TOML. A table in it is one line, or one an entry where it holds lists of texts or tables."""
    lines = []
    for key, value in table.items():
        if isinstance(value, dict) and any(_has_parts(inner) for inner in value.values()):
            lines += [
                line for k, v in value.items() if v is not None for line in _assignment(f"{_key(key)}.{_key(k)}", v)
            ]
        elif value is not None:
            lines += _assignment(_key(key), value)
    return lines


def _has_parts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(item, (str, list, tuple, dict)) for item in value)


def _assignment(key: str, value: Any) -> list[str]:
    """``key = value``; a list that is too long for one line goes on in the next."""
    line = f"{key} = {_value(value)}"
    if len(line) <= _LINE or not isinstance(value, (list, tuple)) or not value:
        return [line]
    lines, current = [], f"{key} = ["
    for number, item in enumerate(value):
        text = _value("" if item is None else item) + (", " if number < len(value) - 1 else "]")
        if len(current) + len(text.rstrip()) > _LINE and current.strip():
            lines.append(current.rstrip())
            current = "  "
        current += text
    return [*lines, current]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple)):
        # A list keeps its length ("dynamic" has one entry a dimension): an absent entry is an empty string.
        return "[" + ", ".join(_value("" if item is None else item) for item in value) + "]"
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def parse(text: str, path: Path | str | None = None) -> KernelFile:
    """The header and body of a kernel file.

    Raises:
        NotAKernelFile: no header, no end of it, or not TOML.
    """
    where = str(path) if path is not None else "the text"
    lines = _unix(text.removeprefix("\ufeff")).split("\n")
    if lines[0].rstrip() != OPENING:
        raise NotAKernelFile(path=where, detail=f"its first line is not {OPENING!r}")
    content: list[str] = []
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == CLOSING:
            try:
                header = tomllib.loads("\n".join(content) + "\n")
            except tomllib.TOMLDecodeError as error:
                raise NotAKernelFile(path=where, detail=str(error)) from None
            return KernelFile(header, "\n".join(lines[number + 1 :]), number + 1)
        if not line.startswith("# ") and line.rstrip() != "#":
            break
        content.append(line[2:])
    raise NotAKernelFile(path=where, line=len(content) + 2, detail=f"the header is not closed by {CLOSING!r}")


def read(path: Path) -> KernelFile:
    """The kernel file at ``path``.

    Raises:
        NotAKernelFile: it is not one, or not text, or cannot be read.
    """
    try:
        return parse(path.read_bytes().decode("utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise NotAKernelFile(path=str(path), detail=error) from None


def looks_like(path: Path) -> bool:
    """Whether the file begins as a kernel file does, without reading all of it."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.removeprefix(b"\xef\xbb\xbf").splitlines()[:1] == [OPENING.encode()]


def source_name(source_path: Path, class_name: str, kernel: Path, root: Path | None) -> str:
    """The header's ``source``: relative to the project where the kernel file lies in it, else to the kernel's folder."""
    source_path, kernel = Path(os.path.abspath(source_path)), Path(os.path.abspath(kernel))
    if root is None:
        root = source_path.parent
    inside = kernel.is_relative_to(root) and source_path.is_relative_to(root)
    base = root if inside else kernel.parent
    return f"{os.path.relpath(source_path, base).replace(os.sep, '/')}::{class_name}"


def find_source(kernel: Path, parsed: KernelFile) -> Path:
    """The source file that a kernel file names, looked for from each folder above it, the nearest first.

    Raises:
        SourceMissing: it is in none of them.
    """
    kernel = Path(os.path.abspath(kernel))
    name = parsed.source_file
    if name:
        for folder in kernel.parents:
            if (folder / name).is_file():
                return Path(os.path.normpath(folder / name))
    raise SourceMissing(path=str(kernel), source=name or "nothing")


def may_write(path: Path, source: str, overwrite: bool = False) -> None:
    """Refuse to replace what is not ours to replace.

    Raises:
        KernelFileEdited: the user edited the file since it was written.
        KernelFileNotOurs: a file without a header, or the kernel of another class.
    """
    if overwrite or not os.path.lexists(path):
        return
    try:
        existing = read(path)
    except NotAKernelFile:
        raise KernelFileNotOurs(path=str(path), detail="was not written by kernel-lsp") from None
    if existing.edited:
        raise KernelFileEdited(path=str(path))
    # The same file may be named from two folders ("norm.py::N", "model/norm.py::N"): compare what the names end with.
    if not ("/" + existing.source).endswith("/" + source) and not ("/" + source).endswith("/" + existing.source):
        raise KernelFileNotOurs(path=str(path), detail=f"is the kernel of {existing.source}")


def write(path: Path, text: str, source: str, overwrite: bool = False) -> None:
    """Put a kernel file in place, whole or not at all: temporary file in the same folder, fsync, rename.

    Raises:
        KernelFileEdited, KernelFileNotOurs: see ``may_write``; asked again right before the rename.
        FileNotWritten: a folder that cannot be written, a disk that is full; what was there before is intact.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, atomic_write.mode(target))
        new = not os.path.lexists(target)
        may_write(target, source, overwrite)
        if not (new and _made(temporary, target)):
            may_write(target, source, overwrite and not new)  # not a file that appeared after overwriting was confirmed
            os.replace(temporary, target)
            temporary = None
        _sync_folder(target.parent)
    except OSError as error:
        raise FileNotWritten(path=str(path), detail=error.strerror or error, number=error.errno) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _made(temporary: str, target: Path) -> bool:
    """Give the file its name, unless another process did so first, or the file system has no links."""
    try:
        os.link(temporary, target)
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the file system lets us."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

"""Which names the kernel file of a class may have. The headers of the files that are there say which one it is."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from kernel_lsp.naming import as_identifier, former_snake_case, in_ascii, is_usual, snake_case

_PART_BYTES = 90  # of the class, and of the source, in the name of a file; 255 is the limit for all of it


def home(source_path: Path, folder: str = "kernels") -> Path:
    """The folder of the kernel files of a source. ``folder`` is the setting."""
    return Path(os.path.abspath(Path(os.path.abspath(source_path)).parent / os.path.expanduser(folder)))


def is_shared(source_path: Path, folder: str = "kernels") -> bool:
    """Whether sources of other folders may have their kernels in the same one: ``folder`` leads out of the source's."""
    return bool(_folder_of_source(source_path, folder).strip("./"))


@functools.lru_cache(maxsize=4096)
def paths(source_path: Path, class_name: str, folder: str = "kernels") -> tuple[Path, ...]:
    """Where the kernel of a class may be written, the first choice first.

    ``blocks.py::ConvNextBlock`` → ``conv_next_block_triton.py``; where that is the kernel of another class,
    ``blocks_conv_next_block_triton.py``; where that is, too, the same with a hash. A file's name that begins with a digit
    goes behind the class: no import statement can name a module that does. All in ASCII (``naming.in_ascii``).
    """
    return _paths(source_path, class_name, folder, in_ascii(snake_case(class_name)), in_ascii(_stem(source_path)))


def _paths(source_path: Path, class_name: str, folder: str, words: str, stem: str) -> tuple[Path, ...]:
    of_class, of_file = _parts(words, stem)
    both = f"{of_file}_{of_class}"
    if not both.isidentifier():
        both = f"{of_class}_{of_file}"
    names = [of_class, both.strip("_"), f"{both.strip('_')}_{_hash(source_path, class_name, folder)}"]
    return tuple(home(source_path, folder) / f"{name}_triton.py" for name in dict.fromkeys(names))


@functools.lru_cache(maxsize=4096)
def former_path(source_path: Path, class_name: str, folder: str = "kernels") -> Path:
    """Where earlier versions wrote the kernel of a class, whose name had its file in it whatever else was there.

    ``layers.py::RMSNorm`` → ``rms_norm__layers_triton.py``, ``19_ReLU.py::Model`` → ``model__19_relu__dc1de1_triton.py``.
    """
    words = former_snake_case(class_name)
    stem = _stem(source_path)
    of_class, of_file = _parts(words, stem)
    plain = of_file == stem and source_path.name.endswith(".py") and of_class == words
    parts = [of_class, of_file] if of_file != of_class else [of_class]
    if not plain or not is_usual(class_name) or is_shared(source_path, folder):
        parts.append(_hash(source_path, class_name, folder))
    return home(source_path, folder) / f"{'__'.join(part for part in parts if part)}_triton.py"


@functools.lru_cache(maxsize=4096)
def former_paths(source_path: Path, class_name: str, folder: str = "kernels") -> tuple[Path, ...]:
    """Wherever earlier versions wrote the kernel of a class: they also cut some names in other words, as ``conv_ne_xt_block``."""
    cut = _paths(source_path, class_name, folder, former_snake_case(class_name), _stem(source_path))
    return former_path(source_path, class_name, folder), *cut


def _stem(source_path: Path) -> str:
    return source_path.name.removesuffix(".py")


def _parts(words: str, stem: str) -> tuple[str, str]:
    """The class, which is given in words, and its file, as far as a module's name can say them."""
    of_class, of_file = (_cut(as_identifier(text)) for text in (words, stem))
    return of_class if of_class.isidentifier() else f"class_{of_class}".rstrip("_"), of_file  # "_1" had only its digit


def _cut(text: str) -> str:
    """As much of a part of a file's name as every file system takes."""
    return text.encode("utf-8", "ignore")[:_PART_BYTES].decode("utf-8", "ignore").rstrip("_")


def _hash(source_path: Path, class_name: str, folder: str) -> str:
    """Of the class and its file; of no folder above those that the kernels are shared by, so that these may be moved."""
    seen_from_kernels = _folder_of_source(source_path, folder)
    whole = (
        f"{seen_from_kernels}/{source_path.name}::{class_name}"
        if seen_from_kernels.strip("./")
        else f"{source_path.name}::{class_name}"
    )
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _folder_of_source(source_path: Path, folder: str) -> str:
    """The source's folder, as seen from that of its kernels."""
    return os.path.relpath(os.path.abspath(source_path.parent), home(source_path, folder)).replace(os.sep, "/")

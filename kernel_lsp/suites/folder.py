"""Any folder of modules with example inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernel_lsp.analysis import imported_with_inputs, module_classes, syntax_error
from kernel_lsp.errors import SourceUnreadable, SuiteEmpty, SuiteFolderMissing, UserError
from kernel_lsp.settings import load
from kernel_lsp.suites.files import python_files
from kernel_lsp.suites.found import Found
from kernel_lsp.suites.problem import Problem

SUITE = "folder"


def read(folders: Iterable[Path]) -> list[Found]:
    """The classes under the folders that have example inputs, in the order of the files.

    Raises:
        SuiteFolderMissing: there is no such folder.
        SuiteEmpty: no class has example inputs.
    """
    found: dict[str, Found] = {}
    named = [Path(os.path.abspath(folder)) for folder in folders]
    for folder in named:
        if not folder.is_dir():
            raise SuiteFolderMissing(path=str(folder))
        for file in python_files(folder):
            relative = file.relative_to(folder).as_posix()
            # Two folders may hold files of one name: their own names tell them apart.
            prefix = f"{folder.name}/" if len(named) > 1 else ""
            for name in classes_with_inputs(file):
                problem = Problem(SUITE, f"{prefix}{relative}::{name}", name, relative, name)
                found.setdefault(problem.id, Found(problem, file, folder))
    if not found:
        wanted = "classes that derive from torch.nn.Module, with get_inputs() or get_inputs_<Class>() in their file"
        raise SuiteEmpty(path=", ".join(map(str, named)), detail=wanted)
    return list(found.values())


def left_out(folders: Iterable[Path]) -> Iterator[UserError]:
    """Why files under the folders are passed over that name example inputs, or of which that is not known.

    They cannot be read, or a syntax error hides all of their classes.
    """
    for folder in folders:
        for file in python_files(Path(os.path.abspath(folder))):
            try:
                source = file.read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                yield SourceUnreadable.of(file, error)
                continue
            if "get_inputs" in source and not classes_with_inputs(file):
                hidden = syntax_error(source, file)
                if hidden is not None:
                    yield hidden


def classes_with_inputs(file: Path) -> list[str]:
    """The module classes of a file whose example inputs stand in the file or in pyproject.toml."""
    try:
        source = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []
    settings, _ = load(file)
    own = [
        module.name
        for module in module_classes(source, file)
        if module.inputs or settings.inputs_for(file, module.name) is not None
    ]
    return list(dict.fromkeys([*own, *imported_with_inputs(source)]))

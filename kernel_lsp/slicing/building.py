"""One attempt at a slice: find the class's definition, collect what it reaches, name it, write it."""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from kernel_lsp.slicing import literals, naming
from kernel_lsp.slicing.collect import Collection, How, Key
from kernel_lsp.slicing.files import File, Workspace, loaded
from kernel_lsp.slicing.naming import GET_INIT_INPUTS, GET_INPUTS, MODEL
from kernel_lsp.slicing.order import in_order
from kernel_lsp.slicing.resolve import Defined, Imported, Resolver
from kernel_lsp.slicing.writing import module_text
from kernel_lsp.specimen.examples import Example, function_for

_WIDTH = 100


class Unsliceable(Exception):
    """The class cannot be written on its own; the text says why."""


@dataclass(frozen=True)
class Subject:
    """What is sliced: ``class_name``, a dotted name in ``module``, which was imported from ``path``, is ``cls``."""

    path: str
    import_root: str
    class_name: str
    module: ModuleType
    cls: type
    example: Example


@dataclass(frozen=True)
class Slice:
    """``modules``: what it still imports of the workspace."""

    source: str
    modules: list[str] = field(default_factory=list)


def build(subject: Subject, how: How) -> Slice:
    """The slice, not yet run.

    Raises:
        Unsliceable: something that the class uses cannot be copied.
        Captured: a name that must be given is taken where it would be used.
    """
    workspace = Workspace(subject.path, subject.import_root)
    resolver = Resolver(workspace, _packages(workspace, subject.cls))
    collection = Collection(resolver, how)
    home = workspace.file(subject.module)
    if home is None:
        raise Unsliceable("its file cannot be read")
    key, rest = _target(collection, home, subject)
    forced = {key: MODEL} if how.rename and not rest else {}
    functions = [
        _Function(collection, home, subject, "get_inputs", GET_INPUTS, _inputs(subject)),
        _Function(collection, home, subject, "get_init_inputs", GET_INIT_INPUTS, _init_inputs(subject)),
    ]
    collection.run()
    for function in functions:
        function.settle(collection, forced)
    first = [home, *([target] if (target := workspace.file(_home(subject.cls))) else [])]
    items = in_order(collection, first)
    texts = [item.made.value for item in items if item.made] + [f.text or "" for f in functions]
    if any("torch." in text for text in texts):
        collection.imported.setdefault(Imported("torch", None, "torch"))
    names = naming.assign(collection, items, forced)
    ending = [] if key in forced else [f"{MODEL} = {'.'.join([names[key], *rest])}"]
    ending += [text for function in functions if (text := function.written(names))]
    source = module_text(collection, items, names, "\n\n\n".join(ending))
    return Slice(source, list(collection.modules))


def _home(cls: type) -> ModuleType:
    module = loaded(cls.__module__)
    if module is None:
        raise Unsliceable(f"its module {cls.__module__} is not loaded")
    return module


def _packages(workspace: Workspace, cls: type) -> frozenset[str]:
    """For a class of an installed package: its module, and those of its bases in that package."""
    if workspace.holds(loaded(cls.__module__)):
        return frozenset()
    package = cls.__module__.partition(".")[0]
    own = {base.__module__ for base in cls.__mro__ if base.__module__.partition(".")[0] == package}
    return frozenset(own - {"torch.nn.modules.module"} | {cls.__module__})


def _target(collection: Collection, home: File, subject: Subject) -> tuple[Key, list[str]]:
    """The class's key, and the attributes to go from there where it is no statement of its own."""
    resolver = collection.resolver
    first, *rest = subject.class_name.split(".")
    resolved = resolver.name(home, first)
    while isinstance(resolved, ModuleType) and rest:
        resolved = resolver.member(resolved, rest.pop(0))
    if not isinstance(resolved, Defined) and not rest:
        resolved = resolver.by_object(subject.cls)
    if not isinstance(resolved, Defined):
        raise Unsliceable("its definition was not found in a Python file")
    outer, path = [resolved.one], resolved.name
    while rest and isinstance(outer[-1], ast.ClassDef):
        inner = next((s for s in outer[-1].body if isinstance(s, ast.ClassDef) and s.name == rest[0]), None)
        if inner is None:
            break
        outer.append(inner)
        path = f"{path}.{rest.pop(0)}"
    if len(outer) > 1 and not rest:
        key = Key(resolved.file.name, path)
        collection.nested(resolved.file, [s for s in outer if isinstance(s, ast.ClassDef)], key)
        return key, []
    key, _ = collection.need(resolved)
    return key, subject.class_name.split(".")[1:] if len(outer) > 1 else rest


class _Function:
    """``get_inputs`` or ``get_init_inputs``: ``text`` returns what was written; without one, the user's own function."""

    def __init__(
        self, collection: Collection, home: File, subject: Subject, prefix: str, name: str, text: str | None
    ) -> None:
        self.name, self.text = name, text
        self.key: Key | Imported | None = None
        self.wrapped = "{}()"
        if text is not None:
            return
        function = function_for(subject.module, prefix, subject.class_name) or getattr(subject.module, name, None)
        if function is None or inspect.isgeneratorfunction(function):  # one that yields gives several examples
            raise Unsliceable(f"{name}() has values that cannot be written down")
        bound = next((n for n, value in vars(subject.module).items() if value is function), function.__name__)
        resolved = collection.resolver.name(home, bound)
        if isinstance(resolved, Defined):
            self.key, _ = collection.need(resolved)
        elif isinstance(resolved, Imported):
            self.key = resolved
            collection.imported[resolved] = None
        else:
            raise Unsliceable(f"the definition of {bound}() was not found")
        given: Any = []
        with suppress(Exception, SystemExit):
            given = function()
        if isinstance(given, dict):
            self.wrapped = "[[], {}()]"
        elif not isinstance(given, list | tuple):
            self.wrapped = "[{}()]"

    def settle(self, collection: Collection, forced: dict[Key, str]) -> None:
        """Let the user's function have the name itself, where nothing is in its way."""
        free = isinstance(self.key, Key) and self.name not in collection.hidden.get(self.key, ())
        if free and self.wrapped == "{}()" and isinstance(self.key, Key) and self.key not in forced:
            forced[self.key] = self.name

    def written(self, names: Any) -> str:
        if self.text is not None:
            return f"def {self.name}():\n    return {self.text}"
        if names[self.key] == self.name:
            return ""
        return f"def {self.name}():\n    return {self.wrapped.replace('{}', names[self.key], 1)}"


def _inputs(subject: Subject) -> str | None:
    args, kwargs = subject.example.args, subject.example.kwargs
    with suppress(TypeError, ValueError):
        bound = inspect.signature(subject.cls.forward).bind(None, *args, **kwargs)  # type: ignore[attr-defined]
        if not bound.kwargs and len(bound.args) == 1 + len(args) + len(kwargs):
            args, kwargs = bound.args[1:], {}
    return _call([literals.example(a) for a in args], {k: literals.example(v) for k, v in kwargs.items()}, args)


def _init_inputs(subject: Subject) -> str | None:
    example = subject.example
    function = function_for(subject.module, "get_init_inputs", subject.class_name)
    shared = function is not None or hasattr(subject.module, GET_INIT_INPUTS)
    write = literals.literal if shared else literals.example  # tensors in pyproject.toml are shapes, no values
    written = {name: write(value) for name, value in example.init_kwargs.items()}
    return _call([write(value) for value in example.init_args], written, example.init_args)


def _call(args: list[str | None], kwargs: dict[str, str | None], values: Any) -> str | None:
    """A flat list, or ``[[args], {kwargs}]`` where there are kwargs or a flat list would be taken for that."""
    if None in args or None in kwargs.values():
        return None
    flat = _listed([str(a) for a in args], "    ")
    taken_for_it = len(values) == 2 and isinstance(values[0], list | tuple) and isinstance(values[1], dict)
    if not kwargs and not taken_for_it:
        return flat
    named = "{" + ", ".join(f"{key!r}: {value}" for key, value in kwargs.items()) + "}"
    return f"[{flat}, {named}]"


def _listed(items: list[str], indent: str) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) <= _WIDTH:
        return line
    inner = "".join(f"{indent}    {item},\n" for item in items)
    return f"[\n{inner}{indent}]"

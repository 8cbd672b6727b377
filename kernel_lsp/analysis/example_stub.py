"""A stub of example inputs for a class: what its methods take, as functions to paste and as a table of pyproject.toml.

Values come from annotations, literals, the fields of dataclasses and, for a configuration without an annotation, from the
attributes that the class reads; shapes from what forward does with an input and from its first layer. They are a start, not an answer: the user puts in shapes of their own.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from .classes import identifier
from .example_shapes import Shape, shape_of
from .example_values import Value, by_annotation, by_name, tensor
from .outline import outlined
from .resolve import Read, Resolver, read_file
from .syntax import Source
from .uses import bound_names

_DEPTH = 4  # of dataclasses in dataclasses, of bases, and of modules that a configuration is handed on to
_WIDE = ("channels", "planes")  # in the name of a size: the input is an image
_SIZE = 64


@dataclass
class Stub:
    """Example inputs, as text.

    Attributes:
        functions: to be put at the end of the file.
        table: the same for pyproject.toml; of the inputs alone where it cannot hold the constructor's arguments, and "" where it
            cannot hold the inputs.
        not_in_toml: the parameters that it cannot hold.
    """

    functions: str
    table: str
    not_in_toml: list[str] = field(default_factory=list)


@dataclass
class _Parameter:
    name: str
    annotation: str
    keyword: bool
    value: Value = field(default_factory=lambda: Value("None"))


def stub(source: Source, path: Path, class_name: str, read: Read = read_file, shown: str = "") -> Stub:
    """Example inputs of a class in ``source``; of one that is not there, or does not parse, without parameters.

    Args:
        read: gives a file's text, or None: for classes that are imported.
        shown: the file as pyproject.toml names it, by default its name.
    """
    return _Stub(source, path, read).of(class_name, shown or path.name)


class _Stub:
    def __init__(self, source: Source, path: Path, read: Read) -> None:
        self.source, self.path = source, path
        self.resolver = Resolver(read)

    def of(self, class_name: str, shown: str) -> Stub:
        found = self._class(self.path, self.source, class_name)
        init = [self._filled(p, found) for p in self._parameters(found, "__init__", 0)]
        forward = self._parameters(found, "forward", 0)
        for parameter in forward:
            parameter.value = self._input(parameter, init, self._shape(found, parameter.name, init))
        name = identifier(class_name)
        lines = self._function(
            f"get_inputs_{name}", f"Example inputs of {class_name}.forward: put in your shapes.", forward
        )
        if init:
            lines += [
                "",
                "",
                *self._function(f"get_init_inputs_{name}", f"Arguments of {class_name}(…): put in your values.", init),
            ]
        not_in_toml = [p.name for p in (*init, *forward) if p.value.toml is None]
        init_in_toml = (
            [] if any(p.name in not_in_toml for p in init) else init
        )  # of some arguments alone no object is made
        return Stub("\n".join(lines) + "\n", _table(f"{shown}::{class_name}", init_in_toml, forward), not_in_toml)

    def _function(self, name: str, doc: str, parameters: list[_Parameter]) -> list[str]:
        bound = bound_names(self.source)
        texts = [parameter.value.code for parameter in parameters]
        needed = [m for m in ("torch", "types") if m not in bound and any(f"{m}." in text for text in texts)]
        imports = [f"    import {module}" for module in needed]
        lines = [f"def {name}():", f'    """{doc}"""', *imports, *([""] if imports else [])]
        plain = [f"{p.value.code},  # {p.name}{p.value.note}" for p in parameters if not p.keyword]
        keywords = [
            f'"{p.name}": {p.value.code},{p.value.note and "  #" + p.value.note}' for p in parameters if p.keyword
        ]
        if not keywords:
            return [*lines, "    return [", *(f"        {line}" for line in plain), "    ]"]
        first = ["        [", *(f"            {line}" for line in plain), "        ],"] if plain else ["        [],"]
        second = ["        {", *(f"            {line}" for line in keywords), "        },"]
        return [*lines, "    return [", *first, *second, "    ]"]

    # values

    def _filled(self, parameter: _Parameter, owner: tuple[Path, ast.ClassDef] | None) -> _Parameter:
        parameter.value = self._value(parameter.name, parameter.annotation, self.path, 0)
        if not parameter.annotation and owner is not None:
            read = self._read(*owner, "__init__", parameter.name, 0)
            if read:
                fields = [f"            {name}={by_name(name, '').code},\n" for name in sorted(read)]
                code = f"types.SimpleNamespace(\n{''.join(fields)}        )"
                parameter.value = Value(code, note=": the attributes that are read")
        return parameter

    def _shape(self, found: tuple[Path, ast.ClassDef] | None, name: str, init: list[_Parameter]) -> Shape:
        """What the class says of the shape of an argument of forward."""
        forward, constructor = self._method(found, "forward", 0), self._method(found, "__init__", 0)
        if forward is None:
            return Shape()
        sizes = {p.name: int(p.value.code) for p in init if p.value.code.isdecimal()}
        if constructor is not None:
            taken = [*constructor.args.posonlyargs, *constructor.args.args]
            pairs = list(zip(reversed(taken), reversed(constructor.args.defaults), strict=False))
            pairs += [
                (a, d) for a, d in zip(constructor.args.kwonlyargs, constructor.args.kw_defaults, strict=True) if d
            ]
            for argument, default in pairs:
                if isinstance(default, ast.Constant) and type(default.value) is int:
                    sizes[argument.arg] = default.value
        return shape_of(name, forward, constructor, sizes)

    def _input(self, parameter: _Parameter, init: list[_Parameter], said: Shape) -> Value:
        if parameter.annotation:
            found = by_annotation(parameter.name, parameter.annotation)
            if found is not None and not found.tensor:
                return found
            if found is None and (made := self._object(parameter.annotation, self.path, 0)) is not None:
                return made
        image = any(part in p.name for p in init for part in _WIDE)
        shape = (2, _SIZE, 32, 32) if image and said.below is None else (8, _SIZE) if init else (8, 128)
        found_shape = said.sizes(shape[-1] if not image else _SIZE) or shape
        return tensor(parameter.name, parameter.annotation, found_shape, said.below)

    def _value(self, name: str, annotation: str, path: Path, depth: int) -> Value:
        if not annotation:
            return by_name(name, "")
        found = by_annotation(name, annotation)
        if found is None:
            found = self._object(annotation, path, depth)
        return found or Value("None", note=f": put in a {annotation}")

    def _object(self, annotation: str, path: Path, depth: int) -> Value | None:
        """An instance of the class that an annotation names; None where the file knows no such name."""
        name = annotation.strip("\"'")
        if name.split(".")[0] not in bound_names(self.source):
            return None
        found = self._class(self.path, self.source, name)
        if found is None or depth >= _DEPTH:
            return Value(f"{name}()", note=": put in its values")
        where, node = found
        if any("Enum" in ast.unparse(base) for base in node.bases):
            return Value(f"next(iter({name}))")
        if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            required = [
                (s.target.id, ast.unparse(s.annotation))
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is None
            ]
            required = [one for one in required if not one[1].startswith(("ClassVar", "typing.ClassVar"))]
        else:
            required = [(p.name, p.annotation) for p in self._parameters(found, "__init__", 0)]
        fields = ", ".join(f"{one}={self._value(one, kind, where, depth + 1).code}" for one, kind in required)
        return Value(f"{name}({fields})", note=": put in its values")

    # what the classes say

    def _class(self, path: Path, source: Source | None, name: str) -> tuple[Path, ast.ClassDef] | None:
        """A class by its name in a file, or where the file imports it from; None where its text cannot be had."""
        text = source.text.text if source is not None else self.resolver.read(path)
        if text is None:
            return None
        source = source or Source(text)
        found = outlined(source)
        for c in found.classes:
            if c.name == name:
                column = source.range(*c.header_bytes).start.column
                tree = _parsed(source.data[c.header_bytes[0] : c.body_end].decode("utf-8", "replace"), column)
                return (path, tree) if tree is not None else None
        for target in found.imports.get(name, []):
            file = self.resolver.file(target.module, path) if target.name is not None else None
            if file is not None and file != path and target.name is not None:
                return self._class(file, None, target.name)
        return None

    def _parameters(self, found: tuple[Path, ast.ClassDef] | None, method: str, depth: int) -> list[_Parameter]:
        """The required parameters of a method, of the class or the nearest base that has it."""
        function = self._method(found, method, depth)
        if function is None:
            return []
        taken = [*function.args.posonlyargs, *function.args.args][1:]
        plain = taken[: len(taken) - min(len(function.args.defaults), len(taken))]
        named = [a for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is None]
        return [_Parameter(a.arg, _text(a.annotation), a in named) for a in (*plain, *named)]

    def _method(self, found: tuple[Path, ast.ClassDef] | None, method: str, depth: int) -> ast.FunctionDef | None:
        if found is None or depth >= _DEPTH:
            return None
        path, node = found
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == method:
                return statement
        for base in node.bases:
            source = self.source if path == self.path else None
            inherited = self._method(self._class(path, source, ast.unparse(base)), method, depth + 1)
            if inherited is not None:
                return inherited
        return None

    def _read(self, path: Path, node: ast.ClassDef, method: str, name: str, depth: int) -> set[str]:
        """The attributes that a class, and the modules that it hands the object on to, read of a parameter."""
        function = self._method((path, node), method, 0)
        if function is None or depth >= _DEPTH:
            return set()
        kept = {
            target.attr
            for one in ast.walk(function)
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and one.value.id == name
            for target in one.targets
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        }
        read = {a.attr for a in ast.walk(function) if isinstance(a, ast.Attribute) and _is_name(a.value, name)}
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Attribute) and one.value.attr in kept:
                read.add(one.attr)
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            source = self.source if path == self.path else None
            places = [i for i, argument in enumerate(call.args) if _is_name(argument, name)]
            inner = self._class(path, source, ast.unparse(call.func)) if places else None
            if inner is None:
                continue
            init = self._method(inner, "__init__", 0)
            taken = [a.arg for a in init.args.args][1:] if init is not None else []
            for place in places[:1]:
                if place < len(taken):
                    read |= self._read(*inner, "__init__", taken[place], depth + 1)
        return read


def _parsed(text: str, column: int) -> ast.ClassDef | None:
    """The class statement whose text begins ``column`` spaces into its line."""
    try:
        tree = ast.parse(textwrap.dedent(" " * column + text))
    except (SyntaxError, ValueError, RecursionError):
        return None
    return next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _text(annotation: ast.expr | None) -> str:
    if annotation is None:
        return ""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)


def _table(name: str, init: list[_Parameter], forward: list[_Parameter]) -> str:
    if not forward or any(p.value.toml is None for p in (*init, *forward)):
        return ""
    lines = [f'[tool.kernel-lsp.inputs."{name}"]']
    for parameters, plain, named in ((init, "init", "init-kwargs"), (forward, "args", "kwargs")):
        values = [str(p.value.toml) for p in parameters if not p.keyword]
        keywords = [f"{p.name} = {p.value.toml}" for p in parameters if p.keyword]
        lines += [f"{plain} = [{', '.join(values)}]"] if values else []
        lines += [f"{named} = {{ {', '.join(keywords)} }}"] if keywords else []
    return "\n".join(lines) + "\n"

"""What an answer's methods read from ``self``, and where each of it is on the user's module.

The drop-in class derives from the user's, so its parameters and submodules are the user's own. What the answer's
constructor sets is left to the user's constructor where that sets the same; settings that the user's module lacks are
set beside it; parameters and submodules under other names are looked for by value, name, kind and order.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from kernel_lsp.class_schema import Subject
from kernel_lsp.generators import torch_names
from kernel_lsp.generators.answers import Code, Unusable
from kernel_lsp.generators.constructors import (
    assigned,
    binds,
    body_of,
    calls_super,
    chain_of,
    constructor_of_model,
    first_argument,
    has_state,
    is_module,
    local_values,
    locals_of,
    normal,
    positions,
    read_from,
    root,
    stores,
)
from kernel_lsp.generators.rewriting import Function, Source, dotted

SET_UP = "_set_up"
#: methods of the drop-in class
RESERVED = ("_in_envelope", "_forward", SET_UP)


_VALUES = (
    ast.Constant | ast.JoinedStr | ast.UnaryOp | ast.BinOp | ast.Compare | ast.Tuple | ast.List | ast.Dict | ast.Set
)
_DEEPEST = 8  # variables that a value is followed through


@dataclass
class Answer:
    """The class of an answer, with the methods it has or inherits from another class of the answer.

    Attributes:
        init: its constructor, if it has one.
        constants: name → assignment in the class body.
        helpers: the other classes of the answer, by name.
    """

    code: Code
    source: Source
    node: ast.ClassDef
    methods: dict[str, Function] = field(default_factory=dict)
    init: Function | None = None
    constants: dict[str, ast.stmt] = field(default_factory=dict)
    helpers: dict[str, ast.ClassDef] = field(default_factory=dict)

    def fail(self, reason: str, node: ast.expr | ast.stmt | None = None) -> Unusable:
        """The error for the answer, with the line of ``node`` or of the class."""
        return Unusable(reason, self.code.line((node or self.node).lineno))


@dataclass
class Settled:
    """What becomes of everything that the methods read.

    Attributes:
        methods: the methods needed, ``forward`` first.
        constants: names in the class body that are needed.
        renames: attribute → what stands for it after ``self.``.
        calls: attribute → the helper class whose forward computes with the user's submodule in its place.
        shared: new attributes of the class: name → value.
        statements: of the constructor, to be run after the user's.
        kept: of these, attribute → what it is: "plain", "tensor" or "module".
    """

    methods: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    renames: dict[str, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    shared: dict[str, ast.expr] = field(default_factory=dict)
    statements: list[ast.stmt] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def settle(answer: Answer, subject: Subject) -> Settled:
    """Where everything is that the answer's forward reads of ``self``.

    Raises:
        Unusable: it reads what nothing sets, or parameters that none of the module's stands for.
    """
    return _Settling(answer, subject).settled()


class _Settling:
    def __init__(self, answer: Answer, subject: Subject) -> None:
        self.answer = answer
        self.there = {*subject.attributes, *RESERVED}
        self.state = subject.state
        self.result = Settled()
        self.theirs = constructor_of_model(subject.source)
        self.ours = assigned(answer.init) if answer.init else {}
        mine = positions(answer.init) if answer.init else {}
        self.locals = local_values(answer.init) if answer.init else {}
        self.texts = {name: normal(value, mine) for name, (value, _) in self.ours.items()}
        self.wanted: list[tuple[str, ast.expr]] = []
        self.done: set[str] = set()
        self.stored: set[str] = set()

    def settled(self) -> Settled:
        self._method("forward")
        while self.wanted:
            name, node = self.wanted.pop(0)
            if name not in self.done:
                self.done.add(name)
                self._read(name, node)
        if self.result.kept:
            self._set_up()
        for name in [*self.result.methods[1:], *self.result.constants]:
            if name in self.there:
                self.result.renames[name] = self._fresh(name)
        return self.result

    def _method(self, name: str) -> None:
        self.result.methods.append(name)
        self._look(self.answer.methods[name])

    def _look(self, node: ast.AST, self_name: str = "") -> None:
        """Note what a method or a part of the constructor reads and sets."""
        own = self_name or first_argument(node)
        for attribute in read_from(node, own, self.answer.node.name):
            if isinstance(attribute.ctx, ast.Load):
                self.wanted.append((attribute.attr, attribute))
            else:
                self.stored.add(attribute.attr)

    def _read(self, name: str, node: ast.expr) -> None:
        if name in self.answer.methods and name != "__init__":
            if name not in self.result.methods:
                self._method(name)
        elif name in self.ours:
            self._set_by_the_answer(name)
        elif name in self.answer.constants:
            self._constant(name)
        elif name not in self.there and name not in self.stored:
            raise self.answer.fail(f"it reads self.{name}, which neither it nor the module sets", node)

    def _constant(self, name: str) -> None:
        """A name in the class body, with the others there that its value is made of."""
        if name not in self.result.constants:
            self.result.constants.append(name)
            for node in ast.walk(self.answer.constants[name]):
                if isinstance(node, ast.Name) and node.id in self.answer.constants:
                    self._constant(node.id)

    def _set_by_the_answer(self, name: str) -> None:
        written, statement = self.ours[name]
        value = self._resolved(written)
        kind = self._kind(value)
        there = name in self.there
        if kind == "helper":
            self._helper(name, value, written, statement)
        elif kind == "parameter" or (kind == "module" and not torch_names.is_stateless(value)):
            if not there:
                self.result.renames[name] = self._elsewhere(name, kind)
        elif there and (kind != "plain" or self.theirs.get(name, ("", value))[0] in ("", self.texts[name])):
            pass
        elif (same := self._same(name)) and not there:
            self.result.renames[name] = same
        elif chain := chain_of(value, first_argument(self.answer.init)):
            self.result.renames[name] = ".".join(chain)
            self.wanted.append((chain[0], value))
        else:
            self._keep(name, written, kind)

    def _resolved(self, value: ast.expr) -> ast.expr:
        """What a variable of the constructor stands for."""
        for _ in range(_DEEPEST):
            if not isinstance(value, ast.Name) or value.id not in self.locals:
                break
            value = self.locals[value.id]
        return value

    def _kind(self, value: ast.expr, depth: int = 0) -> str:
        """What the constructor makes of a value: "helper", "parameter", "module", "tensor" or "plain"."""
        if isinstance(value, ast.Call) and dotted(value.func) in self.answer.helpers:
            return "helper" if is_module(self.answer.helpers[dotted(value.func)]) else "plain"
        called = [dotted(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)]
        if any(name.split(".")[-1] in ("Parameter", "Buffer") for name in called):
            return "parameter"
        chain = dotted(value).split(".")
        if chain[-1] in ("weight", "bias") and chain[0] not in ("", first_argument(self.answer.init)) and chain[1:]:
            return "parameter"  # of a layer that the constructor makes for its initial values alone
        if torch_names.module_kind(value):
            return "module"
        made_by = root(value) or dotted(value)
        first = made_by.partition(".")[0]
        if first in self.locals and depth < _DEEPEST:
            return self._kind(self.locals[first], depth + 1)
        return "tensor" if first == "torch" and made_by.split(".")[-1] in torch_names.MAKE_TENSORS else "plain"

    def _same(self, name: str) -> str:
        """The attribute that the user's constructor gives the same value as the answer's gives ``name``."""
        found = [n for n, (text, _) in self.theirs.items() if text == self.texts[name] and n in self.there]
        return found[0] if len(found) == 1 else ""

    # Parameters and submodules under other names.

    def _elsewhere(self, name: str, kind: str) -> str:
        if same := self._same(name):
            return same
        found = self._parameter(name) if kind == "parameter" else self._submodule(name)
        if not found:
            has = ", ".join(self.state) or "none"
            reason = f"its state differs: nothing of the module stands for its self.{name} (the module's state: {has})"
            raise self.answer.fail(reason, self.ours[name][1])
        return found

    def _parameter(self, name: str) -> str:
        mine = [n for n, (value, _) in self.ours.items() if self._kind(value) == "parameter" and n not in self.there]
        free = [key for key in self.state if key not in self.ours]
        for alike in (
            [key for key in self.state if key.replace(".", "_") == name],
            [key for key in free if key.split(".")[-1] == name],
        ):
            if len(alike) == 1:
                return torch_names.attribute(alike[0])
        role = torch_names.role(name)
        same_role = [n for n in mine if torch_names.role(n) == role]
        keys = [key for key in free if torch_names.role(key.split(".")[-1]) == role]
        if role and len(same_role) == len(keys):
            return torch_names.attribute(keys[same_role.index(name)])
        return torch_names.attribute(free[0]) if len(mine) == len(free) == 1 else ""

    def _submodule(self, name: str) -> str:
        kind = torch_names.module_kind(self.ours[name][0])
        mine = [n for n, (value, _) in self.ours.items() if torch_names.module_kind(value) == kind]
        theirs = [n for n, (_, value) in self.theirs.items() if torch_names.module_kind(value) == kind]
        theirs = [n for n in theirs if n in self.there]
        return theirs[mine.index(name)] if len(mine) == len(theirs) else ""

    def _helper(self, name: str, value: ast.expr, written: ast.expr, statement: ast.stmt) -> None:
        """A submodule of a class of the answer: its forward computes with the module's own in its place."""
        assert isinstance(value, ast.Call)
        helper = self.answer.helpers[dotted(value.func)]
        methods = {s.name: s for s in helper.body if isinstance(s, ast.FunctionDef)}
        init = methods.get("__init__")
        sets = assigned(init) if init else {}
        holds = {n for n, (v, _) in sets.items() if self._kind(v) in ("parameter", "helper") or has_state(v)}
        reads: set[str] = set()
        waiting, seen = ["forward"], set()
        while waiting:
            method = waiting.pop()
            if method in methods and method not in seen:
                seen.add(method)
                inside = [a.attr for a in read_from(methods[method], first_argument(methods[method]))]
                waiting += inside
                reads |= {n for n in inside if n not in methods}
        if not holds:
            self._keep(name, written, "module")
            return
        place = name if name in self.there else self._with_state(holds)
        known = {key.removeprefix(f"{place}.").split(".")[0] for key in self.state if key.startswith(f"{place}.")}
        _, made = self.theirs.get(place, ("", None))
        known |= torch_names.attributes_of(made) if made is not None else set()
        lacks = sorted((reads - known - {"training"}) | (seen - {"forward"}))
        if not place or not holds <= known or lacks:
            what = f"self.{name}.{lacks[0]}" if lacks else f"the {', '.join(sorted(holds))} of self.{name}"
            raise self.answer.fail(f"its state differs: the module has nothing for {what}", statement)
        self.result.calls[name] = helper.name
        if place != name:
            self.result.renames[name] = place

    def _with_state(self, holds: set[str]) -> str:
        """The one submodule whose state has exactly these names."""
        parts: dict[str, set[str]] = {}
        for key in self.state:
            place, _, last = key.rpartition(".")
            parts.setdefault(place, set()).add(last)
        found = [place for place, names in parts.items() if names == holds and place and "." not in place]
        return found[0] if len(found) == 1 else ""

    # Settings of the answer alone.

    def _keep(self, name: str, value: ast.expr, kind: str) -> None:
        known = self.ours[name]
        new = self._fresh(name) if name in self.there else name
        if new != name:
            self.result.renames[name] = new
        free = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} & locals_of(self.answer.init)
        several = sum(isinstance(s, ast.stmt) and name in stores(s, self._own()) for s in body_of(self.answer.init)) > 1
        # A tensor has to move with the module, so it becomes a buffer, and that takes an instance; a function in a
        # class would become a method.
        simple = kind == "module" or (kind == "plain" and isinstance(value, _VALUES))
        if simple and not free and not several and known[1] in body_of(self.answer.init):
            self.result.shared[new] = value
        else:
            self.result.kept[name] = kind

    def _set_up(self) -> None:
        """The statements of the constructor that lead to what is kept, and what they read in turn."""
        names: set[str] = set()
        chosen: list[ast.stmt] = []
        own = self._own()
        for statement in reversed(body_of(self.answer.init)):
            if calls_super(statement):
                continue
            stored = stores(statement, own)
            if not (stored & self.result.kept.keys() or binds(statement) & names):
                continue
            extra = sorted((stored - self.result.kept.keys()) & self.there)
            if extra or any(self._kind(self.ours[n][0]) == "parameter" for n in stored & self.ours.keys()):
                reason = (
                    f"its state differs: self.{(extra or sorted(stored))[0]} is set together with what the module lacks"
                )
                raise self.answer.fail(reason, statement)
            chosen.append(statement)
            names |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            self._look(statement, own)
            while self.wanted:
                name, node = self.wanted.pop()
                if name not in self.done:
                    self.done.add(name)
                    self._read(name, node)  # what is kept for it was set further up, so it is still to come
        self.result.statements = chosen[::-1]

    def _own(self) -> str:
        return first_argument(self.answer.init)

    def _fresh(self, name: str) -> str:
        new = f"_kernel_{name.lstrip('_')}"
        while new in self.there or new in self.ours or new in self.answer.methods:
            new += "_"
        return new

"""A model's answer as a drop-in kernel file: the user's class with another forward, inside the envelope.

Outside the envelope, so also where gradients are wanted, the user's own forward runs.
"""

from __future__ import annotations

import ast
import textwrap

from kernel_lsp.generators import answers, torch_names
from kernel_lsp.generators.answers import Code, Unusable
from kernel_lsp.generators.attributes import SET_UP, Answer, Settled, settle
from kernel_lsp.generators.blocks import names
from kernel_lsp.generators.constructors import first_argument, read_from
from kernel_lsp.generators.rewriting import Function, Source, dotted, is_jit, on_the_tensors_device
from kernel_lsp.schema import Subject

_CONSTANTS = {
    "_DEVICE": '_DEVICE = "cpu" if triton.knobs.runtime.interpret else "cuda"',
    "_PLAIN": "_PLAIN = (torch.Tensor, torch.nn.Parameter)",
    "_MOST_ELEMENTS": "_MOST_ELEMENTS = 2**31 - 2**16  # offsets are 32-bit",
}
_WIDTH = 100


def assemble(code: Code, subject: Subject, *, exact: bool, generator: str) -> str:
    """The body of a kernel file that defines ``<Class>Triton``, from the code of an answer.

    ``exact``: for the example's sizes alone. ``generator``: its name, for the docstring.

    Raises:
        Unusable: the answer's class cannot take the module's place: it needs parameters or settings that neither the
            module has nor the answer sets, or its forward takes other arguments.
    """
    code = answers.completed(code, subject.source, {answers.ORIGINAL, "get_inputs", "get_init_inputs"})
    answer = _read(code)
    settled = settle(answer, subject)
    outer, dot, inner = subject.base.partition(".")
    plain = subject.base.rpartition(".")[2]
    globals_ = _globals(answer)
    imported = f"Eager{outer}" if outer in globals_ else outer
    base = imported + dot + inner
    _rename(answer, settled, plain + "Triton", base, globals_)
    on_the_tensors_device(answer.source)
    lines = answer.source.changed()
    conditions = [*subject.conditions, *(subject.exact if exact else [])]
    class_text = _class(answer, settled, subject, lines, conditions, base)
    others = _needed(_others(answer, lines), class_text)
    body = "\n\n\n".join([*others, class_text])
    constants = [line for name, line in _CONSTANTS.items() if name in body]
    kernels = [node.name for node in answer.source.tree.body if isinstance(node, ast.FunctionDef) and is_jit(node)]
    kernels = [kernel for kernel in kernels if f"def {kernel}(" in body]
    alias = "" if imported == outer else f" as {imported}"
    head = [
        _docstring(subject, kernels, generator),
        "\n".join(_imports(answer, body, [f"from {subject.import_from} import {outer}{alias}"])),
        "\n".join(constants),
    ]
    source = "\n\n".join(head) + "\n\n\n" + body + "\n"
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unusable(f"put together with the module it does not parse: {error}", code.first_line) from None
    return source


def _read(code: Code) -> Answer:
    """The class of an answer, and the methods that it inherits from other classes of the answer but Model."""
    source = Source(code.source)
    classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
    answer = Answer(code, source, classes[code.class_name])
    answer.helpers = {name: node for name, node in classes.items() if node is not answer.node}
    waiting, seen = [answer.node], set()
    while waiting:
        node = waiting.pop(0)
        seen.add(node.name)
        for statement in node.body:
            if isinstance(statement, Function):
                answer.methods.setdefault(statement.name, statement)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    if isinstance(target, ast.Name):
                        answer.constants.setdefault(target.id, statement)
        bases = [classes[dotted(base)] for base in node.bases if dotted(base) in classes]
        waiting += [base for base in bases if base.name not in seen and base.name != answers.ORIGINAL]
    answer.init = answer.methods.get("__init__")
    if "forward" not in answer.methods:
        raise answer.fail(f"its {code.class_name} has no forward")
    return answer


def _globals(answer: Answer) -> set[str]:
    """The names that the answer binds at its top, without its class."""
    return names("\n".join(answer.source.lines))[0] - {answer.node.name}


def _rename(answer: Answer, settled: Settled, drop_in: str, base: str, globals_: set[str]) -> None:
    """Give the class its new name, what stands in the way of ours another, and attributes their places."""
    source = answer.source
    new = {name: f"{name}_" for name in globals_ & {drop_in, *_CONSTANTS}}
    if answers.ORIGINAL not in globals_:
        new[answers.ORIGINAL] = base  # the prompt's name for the user's class
    new[answer.node.name] = drop_in
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id in new:
            source.replace(source.start(node), source.end(node), new[node.id])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in new and node is not answer.node:
            source.rename(node, "def" if isinstance(node, ast.FunctionDef) else "class", node.name, new[node.name])
    for name in settled.methods:
        if name in settled.renames:
            source.rename(answer.methods[name], "def", name, settled.renames[name])
    for name in settled.constants:
        for node in ast.walk(answer.constants[name]):
            if isinstance(node, ast.Name) and node.id == name and name in settled.renames:
                source.replace(source.start(node), source.end(node), settled.renames[name])
    for function in {answer.init, *(answer.methods[name] for name in settled.methods)} - {None}:
        assert function is not None
        _place_attributes(answer, settled, function, new)
    for statement in settled.statements:
        for inside in ast.walk(statement):
            _keep_out_of_the_state(answer, settled, inside)


def _place_attributes(answer: Answer, settled: Settled, function: Function, new: dict[str, str]) -> None:
    source, own = answer.source, first_argument(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and dotted(node.func.value) == own:
            helper = settled.calls.get(node.func.attr)
            if helper and function is not answer.init:
                line, end = source.end(node.func)
                opening = source.lines[line - 1].index("(", end)
                place = settled.renames.get(node.func.attr, node.func.attr)
                comma = ", " if node.args or node.keywords else ""
                text = f"{new.get(helper, helper)}.forward({own}.{place}{comma}"
                source.replace(source.start(node.func), (line, opening + 1), text)
    for attribute in read_from(function, own, answer.node.name):
        if attribute.attr in settled.renames:
            text = f".{settled.renames[attribute.attr]}"
            source.replace(source.end(attribute.value), source.end(attribute), text)


def _keep_out_of_the_state(answer: Answer, settled: Settled, node: ast.AST) -> None:
    """A tensor of the answer's becomes a buffer that no state_dict has; a module of its is not registered."""
    source, own = answer.source, first_argument(answer.init)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        name = node.targets[0].attr
        kind = settled.kept.get(name, "plain") if dotted(node.targets[0].value) == own else "plain"
        new = settled.renames.get(name, name)
        if kind == "tensor":
            source.replace(source.start(node), source.start(node.value), f'{own}.register_buffer("{new}", ')
            source.replace(source.end(node.value), source.end(node.value), ", persistent=False)")
        elif kind == "module":
            source.replace(source.start(node), source.start(node.value), f'object.__setattr__({own}, "{new}", ')
            source.replace(source.end(node.value), source.end(node.value), ")")
    elif isinstance(node, ast.Call) and dotted(node.func) == f"{own}.register_buffer":
        line, end = source.end(node)
        persistent = [k for k in node.keywords if k.arg == "persistent"]
        if persistent:
            source.replace(source.start(persistent[0].value), source.end(persistent[0].value), "False")
        elif len(node.args) == 2:
            source.replace((line, end - 1), (line, end), ", persistent=False)")


def _class(
    answer: Answer, settled: Settled, subject: Subject, lines: list[str], conditions: list[str], base: str
) -> str:
    """The drop-in class. ``lines``: the answer's source, changed."""
    plain = subject.base.rpartition(".")[2]
    parts = [f'class {plain}Triton({base}):\n    """{plain}: the kernel where it was validated, eager elsewhere."""']
    values = [_piece(answer.source, lines, answer.constants[name], 4) for name in settled.constants]
    values += [_shared(answer, settled, lines, name, value) for name, value in settled.shared.items()]
    if values:
        parts.append("\n".join(dict.fromkeys(values)))
    if settled.statements:
        assert answer.init is not None
        given = "*args, **kwargs" if ast.unparse(answer.init.args) != first_argument(answer.init) else ""
        parts.append(
            "    def __init__(self, *args, **kwargs):\n"
            "        super().__init__(*args, **kwargs)\n"
            f"        self.{SET_UP}({given})"
        )
        body = [_piece(answer.source, lines, statement, 8) for statement in settled.statements]
        said = '        """What the kernels need and the module does not hold."""'
        parts.append("\n".join([f"    def {SET_UP}({ast.unparse(answer.init.args)}):", said, *body]))
    parts.append(_forward(answer, subject, lines))
    if not _is_inlined(answer, subject):
        answer.source.rename(answer.methods["forward"], "def", "forward", "_forward")
        again = answer.source.changed()
        parts.append(_piece(answer.source, again, answer.methods["forward"], 4))
    parts += [_piece(answer.source, lines, answer.methods[name], 4) for name in settled.methods[1:]]
    parts.append(_in_envelope(subject, conditions))
    return "\n\n".join(parts)


def _shared(answer: Answer, settled: Settled, lines: list[str], name: str, value: ast.expr) -> str:
    """An attribute of the class for what the constructor set whatever it was given."""
    kind = torch_names.module_kind(value)
    return f"    {name} = {ast.unparse(value)}{'.eval()' if 'Dropout' in kind else ''}"


def _forward(answer: Answer, subject: Subject, lines: list[str]) -> str:
    passed = ", ".join(subject.names)
    check = f"if not self._in_envelope({passed}):\n    return super().forward({passed})\n"
    header = f"    def forward({', '.join(['self', *subject.parameters])}):\n"
    forward = answer.methods["forward"]
    if not _is_inlined(answer, subject):
        return f"{header}{textwrap.indent(check, ' ' * 8)}        return self._forward({_arguments(answer, subject)})"
    body = forward.body
    said = ""
    if ast.get_docstring(forward) is not None and len(body) > 1:
        said, body = _piece(answer.source, lines, body[0], 8) + "\n", body[1:]
    first = _first_line(answer.source, body[0], forward)
    last = body[-1].end_lineno or body[-1].lineno
    text = _indented(answer.source, lines, first, last, body[0].col_offset, 8)
    return f"{header}{said}{textwrap.indent(check, ' ' * 8)}{text}"


def _is_inlined(answer: Answer, subject: Subject) -> bool:
    """Whether the answer's forward takes what the module's takes, so that its body can stand in forward itself."""
    forward = answer.methods["forward"]
    plain = isinstance(forward, ast.FunctionDef) and not forward.decorator_list and forward in answer.node.body
    return (
        plain
        and first_argument(forward) == "self"
        and _parameters(forward) == subject.names
        and forward.body[0].lineno > forward.lineno
        and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(forward))
    )


def _parameters(forward: Function) -> list[str]:
    """forward's parameters in the form of ``Subject.names``."""
    arguments = forward.args
    found = [a.arg for a in [*arguments.posonlyargs, *arguments.args]][1:]
    found += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    found += [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
    return found + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _arguments(answer: Answer, subject: Subject) -> str:
    """What the answer's forward is given. Raises Unusable where it takes something else than the module's."""
    forward = answer.methods["forward"]
    takes, gives = _parameters(forward), subject.names
    if any("*" in name for name in takes):
        return ", ".join(gives)
    places = [name for name in takes if "=" not in name]
    named = [name.partition("=")[0] for name in takes if "=" in name]
    by_name = {name.partition("=")[0] for name in gives if "*" not in name}
    if {*places, *named} <= by_name:
        told = [*places, *(f"{name}={name}" for name in named)]
        least = len(told)
    else:
        told = [name.partition("=")[0] for name in gives if "*" not in name]
        least = len(places) - len(forward.args.defaults)
    left_out = [t for t in subject.tensors if not any(t == name or t.startswith(f"{name}[") for name in told)]
    if len(told) > len(takes) or len(told) < least or (left_out and {*places, *named} <= by_name):
        theirs = ", ".join(subject.parameters)
        raise answer.fail(f"its forward takes ({', '.join(takes)}), the module's takes ({theirs})", forward)
    return ", ".join(told)


def _in_envelope(subject: Subject, conditions: list[str]) -> str:
    test = "return (\n    " + "\n    and ".join(conditions or ["True"]) + "\n)"
    if any("self." in condition for condition in conditions):
        absent = "except (AttributeError, LookupError):\n    return False  # constructed otherwise, it may lack what is looked at"
        test = f"try:\n{textwrap.indent(test, '    ')}\n{absent}"
    declared = ", ".join(["self", *subject.parameters])
    return (
        f"    def _in_envelope({declared}):\n"
        '        """Whether the kernel was validated for such arguments, parameters and settings."""\n'
        + textwrap.indent(test, " " * 8)
    )


def _others(answer: Answer, lines: list[str]) -> list[str]:
    """The statements of the answer beside its imports and its class, as they stand after the changes."""
    others = []
    for node in answer.source.tree.body:
        if node is not answer.node and not isinstance(node, ast.Import | ast.ImportFrom):
            others.append(_piece(answer.source, lines, node, 0))
    return others


def _needed(others: list[str], class_text: str) -> list[str]:
    """Those of ``others`` that the class uses, itself or through another."""
    about = [names(text) for text in others]
    wanted, used = names(class_text)[1], set[int]()
    while True:
        more = {i for i, (binds, _) in enumerate(about) if binds & wanted} - used
        if not more:
            return [text for i, text in enumerate(others) if i in used]
        used |= more
        wanted |= {name for i in more for name in about[i][1]}


def _imports(answer: Answer, body: str, own: list[str]) -> list[str]:
    """The import statements for ``body``: the standard library's, torch's and triton's, the user's."""
    used = names(body)[1] | {"torch", "triton"}
    found = {"import torch", "import triton"}
    for node in answer.source.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            everything = any(alias.name == "*" for alias in node.names)
            found |= {ast.unparse(node)} if everything else set(answers.import_parts(node, used))
    groups: dict[int, list[str]] = {}
    for text in sorted(found, key=lambda text: (text.startswith("from"), text)):
        top = text.split()[1].partition(".")[0]
        groups.setdefault(0 if top == "__future__" else 2 if top in ("torch", "triton") else 1, []).append(text)
    groups[3] = own
    lines: list[str] = []
    for _, texts in sorted(groups.items()):
        lines += [*([""] if lines else []), *texts]
    return lines


def _docstring(subject: Subject, kernels: list[str], generator: str) -> str:
    what = "Triton kernels" if len(kernels) > 1 else "a Triton kernel" if kernels else "code"
    named = f": {', '.join(kernels)}." if kernels else "."
    text = f"{subject.base} with {what} that a language model wrote ({generator}){named}"
    first, *rest = textwrap.wrap(text.replace("\\", "/").replace('"', "'"), _WIDTH - 4)
    below = "It runs inside the envelope of the class below, where it was validated; elsewhere the eager forward runs."
    return '"""' + "\n".join([first, *rest, "", below]) + '\n"""'


def _piece(source: Source, lines: list[str], node: ast.stmt, indentation: int) -> str:
    """The lines of a statement, with its decorators and the comments right above, moved to an indentation."""
    first = _first_line(source, node, None)
    before = source.lines[node.lineno - 1][: node.col_offset]
    if before.strip() and not getattr(node, "decorator_list", []):
        return textwrap.indent(ast.unparse(node), " " * indentation)  # not the first statement on its line
    return _indented(source, lines, first, node.end_lineno or node.lineno, node.col_offset, indentation)


def _first_line(source: Source, node: ast.stmt, inside: Function | None) -> int:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    floor = inside.lineno if inside else 0
    while first - 1 > floor and source.lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def _indented(source: Source, lines: list[str], first: int, last: int, old: int, new: int) -> str:
    """Lines ``first`` to ``last`` moved from one indentation to another, as far as they have it."""
    kept = []
    for number in range(first, last + 1):
        if number in source.gone:
            continue
        line = lines[number - 1]
        depth = len(line) - len(line.lstrip(" "))
        kept.append(line if not line.strip() or depth < old else " " * new + line[old:])
    return "\n".join(kept)

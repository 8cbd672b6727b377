"""The drop-in class: the user's class with the answer's forward where the envelope holds."""

from __future__ import annotations

import ast
import textwrap

from kernel_lsp.class_schema import Subject
from kernel_lsp.envelope_constants import envelope_body
from kernel_lsp.generators import torch_names
from kernel_lsp.generators.attributes import SET_UP, Answer, Settled
from kernel_lsp.generators.constructors import first_argument
from kernel_lsp.generators.rewriting import Function
from kernel_lsp.naming import kernel_class


def class_text(
    answer: Answer, settled: Settled, subject: Subject, lines: list[str], conditions: list[str], base: str
) -> str:
    """The drop-in class. ``lines``: the answer's source, changed.

    Raises:
        Unusable: forward takes other parameters than the module's.
    """
    plain = subject.base.rpartition(".")[2]
    parts = [
        f'class {kernel_class(plain)}({base}):\n    """{plain}: the kernel where it was validated, eager elsewhere."""'
    ]
    constants = sorted((answer.constants[name] for name in settled.constants), key=lambda node: node.lineno)
    values = [answer.source.piece(lines, node, 4) for node in constants]
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
        body = [answer.source.piece(lines, statement, 8) for statement in settled.statements]
        said = '        """What the kernels need and the module does not hold."""'
        parts.append("\n".join([f"    def {SET_UP}({ast.unparse(answer.init.args)}):", said, *body]))
    parts.append(_forward(answer, subject, lines))
    if not _is_inlined(answer, subject):
        answer.source.rename(answer.methods["forward"], "def", "forward", "_forward")
        again = answer.source.changed()
        parts.append(answer.source.piece(again, answer.methods["forward"], 4))
    parts += [answer.source.piece(lines, answer.methods[name], 4) for name in settled.methods[1:]]
    parts.append(_in_envelope(subject, conditions))
    return "\n\n".join(parts)


def _shared(answer: Answer, settled: Settled, lines: list[str], name: str, value: ast.expr) -> str:
    """An attribute of the class for what the constructor set whatever it was given."""
    text = ast.unparse(value)
    for statement in answer.init.body if answer.init else []:
        if isinstance(statement, ast.Assign) and statement.value is value and len(statement.targets) == 1:
            last = statement.end_lineno or statement.lineno
            whole = answer.source.moved(lines, statement.lineno, last, statement.col_offset, 4)
            text = whole.partition("=")[2].strip()
    return f"    {name} = {text}{'.eval()' if 'Dropout' in torch_names.module_kind(value) else ''}"


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
        said, body = answer.source.piece(lines, body[0], 8) + "\n", body[1:]
    first = answer.source.first_line(body[0], forward.lineno)
    last = body[-1].end_lineno or body[-1].lineno
    text = answer.source.moved(lines, first, last, body[0].col_offset, 8)
    return f"{header}{said}{textwrap.indent(check, ' ' * 8)}{text}"


def _is_inlined(answer: Answer, subject: Subject) -> bool:
    """Whether the answer's forward takes what the module's takes, so that its body can stand in forward itself."""
    forward = answer.methods["forward"]
    plain = isinstance(forward, ast.FunctionDef) and not forward.decorator_list and forward in answer.node.body
    return (
        plain
        and first_argument(forward) == "self"
        and parameters_of(forward) == subject.names
        and forward.body[0].lineno > forward.lineno
        and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(forward))
    )


def parameters_of(forward: Function) -> list[str]:
    """forward's parameters in the form of ``Subject.names``."""
    arguments = forward.args
    found = [a.arg for a in [*arguments.posonlyargs, *arguments.args]][1:]
    found += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    found += [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
    return found + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _arguments(answer: Answer, subject: Subject) -> str:
    """What the answer's forward is given.

    Raises:
        Unusable: it takes something else than the module's.
    """
    forward = answer.methods["forward"]
    takes, gives = parameters_of(forward), subject.names
    if any("*" in name for name in takes):
        return ", ".join(gives)
    places = [name for name in takes if "=" not in name]
    named = [name.partition("=")[0] for name in takes if "=" in name]
    by_name = {name.partition("=")[0] for name in gives if "*" not in name}
    least = len(places) - len(forward.args.defaults)
    left_out: list[str] = []
    if {*places, *named} <= by_name:
        told = [*places, *(f"{name}={name}" for name in named)]
        given = {*places, *named}
        left_out = [text for text in subject.tensors if text.partition("[")[0] not in given]
    else:
        told = [name.partition("=")[0] for name in gives if "*" not in name]
        if not least <= len(told) <= len(takes) or any("*" in name for name in gives):
            told = subject.tensors  # the envelope holds everything else to what it was
    if left_out or not least <= len(told) <= len(takes):
        theirs = ", ".join(subject.parameters)
        raise answer.fail(f"its forward takes ({', '.join(takes)}), the module's takes ({theirs})", forward)
    return ", ".join(told)


def _in_envelope(subject: Subject, conditions: list[str]) -> str:
    declared = ", ".join(["self", *subject.parameters])
    return (
        f"    def _in_envelope({declared}):\n"
        '        """Whether the kernel was validated for such arguments, parameters and settings."""\n'
        + textwrap.indent(envelope_body(conditions), " " * 8)
    )

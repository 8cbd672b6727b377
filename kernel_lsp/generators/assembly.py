"""A model's answer as a drop-in kernel file: the user's class with another forward, inside the envelope.

Outside the envelope, so also where gradients are wanted, the user's own forward runs.
"""

from __future__ import annotations

import ast
import textwrap
import warnings

from kernel_lsp.class_schema import Subject
from kernel_lsp.envelope_constants import CONSTANTS, LIBDEVICE, WITHOUT_LIBDEVICE, WITHOUT_SHORT_FLOATS
from kernel_lsp.generators import answers
from kernel_lsp.generators.answers import Code, Unusable
from kernel_lsp.generators.attributes import Answer, settle
from kernel_lsp.generators.blocks import names
from kernel_lsp.generators.drop_in import class_text
from kernel_lsp.generators.renaming import globals_of, rename
from kernel_lsp.generators.rewriting import Function, Source, dotted, is_jit, on_the_tensors_device
from kernel_lsp.loading import import_lines
from kernel_lsp.naming import kernel_class

_WIDTH = 100


def assemble(code: Code, subject: Subject, *, exact: bool, generator: str) -> str:
    """The body of a kernel file that defines ``<Class>Triton``, from the code of an answer.

    ``exact``: for the example's sizes alone. ``generator``: its name, for the docstring.

    Raises:
        Unusable: the answer's class cannot take the module's place: it needs parameters or settings that neither the
            module has nor the answer sets, or its forward takes other arguments.
    """
    try:
        return _assembled(code, subject, exact, generator)
    except (SyntaxError, ValueError) as error:
        raise Unusable(f"put together with the module it does not parse: {error}", code.first_line) from None
    except (RecursionError, MemoryError):
        raise Unusable("it is nested too deeply to be read", code.first_line) from None


def _assembled(code: Code, subject: Subject, exact: bool, generator: str) -> str:
    code = answers.completed(code, subject.source, {answers.ORIGINAL, "get_inputs", "get_init_inputs"})
    answer = _read(code)
    settled = settle(answer, subject)
    outer, dot, inner = subject.base.partition(".")
    plain = subject.base.rpartition(".")[2]
    bound = globals_of(answer)
    imported = f"Eager{outer}" if outer in bound else outer
    base = imported + dot + inner
    rename(answer, settled, kernel_class(plain), base, bound)
    on_the_tensors_device(answer.source)
    lines = answer.source.changed()
    conditions = [*subject.conditions, *(subject.exact if exact else [])]
    written = class_text(answer, settled, subject, lines, conditions, base)
    others = _needed(_others(answer, lines), written)
    body = "\n\n\n".join([*others, written])
    constants = [line for name, line in CONSTANTS.items() if name in body]
    imports = _imports(answer, body, import_lines(subject.import_from, subject.import_file, outer, imported))
    if CONSTANTS["_DEVICE"] in constants:
        if LIBDEVICE in imports:
            constants.append(WITHOUT_LIBDEVICE)
        elif any("torch.bfloat16" in condition or "torch.float8" in condition for condition in conditions):
            imports.insert(imports.index("import triton") + 1, LIBDEVICE)
            constants.append(WITHOUT_SHORT_FLOATS)
    kernels = [node.name for node in answer.source.tree.body if isinstance(node, ast.FunctionDef) and is_jit(node)]
    kernels = [kernel for kernel in kernels if f"def {kernel}(" in body]
    head = [
        _docstring(subject, kernels, generator),
        "\n".join(imports),
        "\n".join(constants),
    ]
    source = "\n\n".join(head) + "\n\n\n" + body + "\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what the model wrote
        compile(source, "answer", "exec", dont_inherit=True)
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


def _others(answer: Answer, lines: list[str]) -> list[str]:
    """The statements of the answer beside its imports and its class, as they stand after the changes."""
    others = []
    for node in answer.source.tree.body:
        if node is not answer.node and not isinstance(node, ast.Import | ast.ImportFrom):
            others.append(answer.source.piece(lines, node, 0))
    return others


def _needed(others: list[str], written: str) -> list[str]:
    """Those of ``others`` that the class uses, itself or through another."""
    about = [names(text) for text in others]
    wanted, used = names(written)[1], set[int]()
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

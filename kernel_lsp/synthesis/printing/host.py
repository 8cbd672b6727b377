"""The host function of a generated file: buffers, launches and torch calls in order."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.size_text import python

from ..graph.functions import literal
from ..graph.names import Names, variable_name
from ..graph.sizes import same
from ..graph.value import Graph, Input, Partial, Scalar, Shape, TorchCall, Value, View, input_of, operands, topological
from ..kernel.arguments import Arguments
from ..kernel.steps import Call, Hints, HostView, Kernel, Plan
from ..passes.rewrite import CHUNK
from ..schedule.choices import Options, kernel_source
from ..schedule.matmul import strided_operands
from ..schedule.source import KernelSource
from . import bounds
from .formula import formula
from .sharing import form

#: Names for the sizes of the first tensor, by rank.
_SIZE_NAMES = {
    1: ("length",),
    2: ("n_rows", "n_cols"),
    3: ("batch", "length", "width"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


@dataclass
class Function:
    """A kernel of the file, the formula of its first launch, and how many launches there are."""

    source: KernelSource
    formula: str
    launches: int = 1

    @property
    def text(self) -> str:
        return self.source.text(_docstring(self))


@dataclass
class Host:
    """What was written: ``parameters`` of the host function with the Values they hold, its body, the kernels."""

    parameters: list[tuple[str, Value]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    kernels: dict[str, Function] = field(default_factory=dict)  # by form, see sharing
    sources: list[KernelSource] = field(default_factory=list)  # of every launch
    requires: list[str] = field(default_factory=list)
    torch_calls: int = 0
    checks_indices: bool = False


def write(
    graph: Graph,
    plan: Plan,
    hints: Hints,
    chunks: dict[sympy.Symbol, sympy.Expr],
    name: str,
    function: str,
    options: Options,
    scattered: frozenset[str] = frozenset(),
    check_indices: bool = False,
) -> Host:
    """Write the host function for a plan. ``chunks``: the symbols of split reductions with the length each splits.

    ``name``: what kernels are named after; ``function``: the host function's own. ``scattered``: the Python of parameters and buffers that are not contiguous, which are copied in every call.
    """
    host = Host()
    wanted = _kernel_names(plan, name)
    names = Names([function, *wanted.values()])
    variables: dict[Value, str] = {}
    used = _used_inputs(plan, graph)
    used.sort(key=lambda v: input_of(v).kind != "argument")  # what forward is given comes first
    for value in used:
        variables[value] = names.fresh(variable_name(value))
        host.parameters.append((variables[value], value))
    symbols = _symbols(used, variables)
    for symbol, length in chunks.items():
        text = python(length, {s: t for s, (_, t) in symbols.items()})
        symbols[symbol] = (symbol.name, f"triton.cdiv({text}, {CHUNK})")
    strided = _strided(plan)
    for value in used:
        given = isinstance(value.op, Input) and (value.op.kind == "argument" or value.op.source in scattered)
        if given and value.shape and value not in strided:
            host.body.append(f"{variables[value]} = {variables[value]}.contiguous()")
        elif isinstance(value.op, Input) and value.op.kind != "argument" and value.shape and value not in strided:
            host.requires.append(f"{value.op.source}.is_contiguous()")
    kernel_names = Names(variables.values())
    checked: set[str] = set()
    for step in plan.steps:
        if isinstance(step, Kernel):
            if check_indices:
                host.body += bounds.statements(step, variables, symbols, checked)
            _launch(step, wanted[step], kernel_names, host, names, variables, symbols, hints, options, strided)
        elif isinstance(step, HostView):
            (operand,) = operands(step.value)
            variables[step.value] = f"{variables[operand]}{_view(step.value, symbols)}"
        else:
            _call(step, host, names, variables, symbols)
    host.body.append(f"return {_result(graph, variables)}")
    host.checks_indices = bool(checked)
    return host


def _used_inputs(plan: Plan, graph: Graph) -> list[Value]:
    used: dict[Value, None] = {}
    for step in plan.steps:
        if isinstance(step, Kernel):
            roots = [v for v, _ in step.stores] + ([step.matmul] if step.matmul else [])
            for v in topological(roots):
                if isinstance(v.op, Input):
                    used[v] = None
        elif isinstance(step, Call):
            for v in step.values:
                used.update({o: None for o in operands(v) if isinstance(o.op, Input)})
        elif isinstance(step.value.op, View) and isinstance(step.value.op.operand.op, Input):
            used[step.value.op.operand] = None
    used.update({v: None for v in graph.outputs if isinstance(v.op, Input)})
    return [v for v in graph.inputs if v in used]


def _strided(plan: Plan) -> set[Value]:
    """Inputs that only matrix products read, through strides: they need not be contiguous."""
    strided: set[Value] = set()
    other: set[Value] = set()
    for step in plan.steps:
        if isinstance(step, Kernel) and step.matmul is not None:
            by_stride = set(strided_operands(step, plan.stored))
            strided |= by_stride
            other |= set(step.leaves) | ({v for v in topological([step.matmul]) if isinstance(v.op, Input)} - by_stride)
        elif isinstance(step, Kernel):
            other |= set(step.leaves)
    return strided - other


def _symbols(inputs: list[Value], variables: dict[Value, str]) -> dict[sympy.Symbol, tuple[str, str]]:
    """Each size symbol's name inside kernels and its Python on the host."""
    symbols: dict[sympy.Symbol, tuple[str, str]] = {}
    taken: set[str] = set()
    for value in inputs:
        names = _SIZE_NAMES.get(len(value.shape), tuple(f"size{i}" for i in range(len(value.shape))))
        for i, n in enumerate(value.shape):
            if isinstance(n, sympy.Symbol) and n not in symbols:
                name = names[i] if names[i] not in taken else f"{variables[value]}_{names[i]}"
                taken.add(name)
                symbols[n] = (name, f"{variables[value]}.shape[{i}]")
    return symbols


def _kernel_names(plan: Plan, name: str) -> dict[Kernel, str]:
    """What each kernel would be called; several may want one name."""
    kernels = [s for s in plan.steps if isinstance(s, Kernel)]
    if len(kernels) == 1:
        return {kernels[0]: f"{name}_kernel"}
    result: dict[Kernel, str] = {}
    for kernel in kernels:
        value = kernel.stores[0][0]
        what = value.meaning[0] if value.meaning and not value.module else variable_name(value)
        if kernel.partial is not None:
            assert isinstance(kernel.partial.op, Partial)
            what = f"partial_{kernel.partial.op.kind.removeprefix('a')}"
        elif kernel.matmul is not None and not value.module and "linear" not in what and "matmul" not in what:
            what = f"matmul_{what}" if value is not kernel.matmul else "matmul"
        result[kernel] = f"{what}_kernel"
    return result


def _launch(
    step: Kernel,
    wanted: str,
    kernel_names: Names,
    host: Host,
    names: Names,
    variables: dict[Value, str],
    symbols: Any,
    hints: Hints,
    options: Options,
    strided: set[Value],
) -> None:
    stored = [(step.partial, ())] if step.partial is not None else step.stores
    arguments = Arguments(Names([wanted]), symbols)
    # What is in memory by now: the plan's stored values include those of later steps.
    source = kernel_source(step, wanted, arguments, hints, set(variables), options, strided)
    for value, _ in stored:
        assert value is not None
        variable = names.fresh(
            "out"
            if len(stored) == 1 and value.meaning is None and not (value.name or value.module)
            else variable_name(value)
        )
        host.body.append(f"{variable} = {_empty(value, host, variables, symbols)}")
        variables[value] = variable
    text = "; ".join(f"{variables[v]} = {formula(v, variables)}" for v, _ in step.stores if v in variables)
    if step.partial is not None:
        text = f"{variables[step.partial]} = {formula(step.stores[0][0], variables)}, chunk by chunk"
    key = form(source.text(""))
    if key in host.kernels:
        host.kernels[key].launches += 1
    else:
        source.name = kernel_names.fresh(wanted)
        host.kernels[key] = Function(source, text)
    host.body += source.launch(variables, names, host.kernels[key].source)
    host.sources.append(source)
    host.requires += [r for r in source_requires(source, host) if r not in host.requires]


def source_requires(source: KernelSource, host: Host) -> list[str]:
    """The kernel's own limits, in terms of forward's arguments."""
    result = []
    for text in source.requires:
        for variable, value in host.parameters:
            text = text.replace(f"{variable}.shape", f"{input_of(value).source}.shape")
        result.append(text)
    return result


def _docstring(kernel: Function) -> str:
    head = textwrap.wrap(f"{kernel.formula}.", 92)
    about = [*textwrap.wrap(kernel.source.tiling, 92)]
    if kernel.launches > 1:
        about.append(f"{kernel.launches} launches, each of other tensors: the formula is the first one's.")
    return "\n    ".join([*head, "", *about, ""])


def _empty(value: Value, host: Host, variables: dict[Value, str], symbols: Any) -> str:
    """An uninitialised buffer for ``value``."""
    for name, other in host.parameters:
        if (
            other.dtype == value.dtype
            and len(other.shape) == len(value.shape)
            and value.shape
            and input_of(other).kind == "argument"
            and all(same(a, b) for a, b in zip(other.shape, value.shape, strict=True))
        ):
            return f"torch.empty_like({name}, memory_format=torch.contiguous_format)"
    first = host.parameters[0][0]
    return f"torch.empty({_shape(value.shape, symbols)}, device={first}.device, dtype={value.dtype})"


def _shape(shape: Shape, symbols: Any) -> str:
    texts = {s: t for s, (_, t) in symbols.items()}
    parts = [python(n, texts) for n in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _view(value: Value, symbols: Any) -> str:
    op = value.op
    assert isinstance(op, View)
    if op.kind == "permute":
        return f".permute{op.detail}".replace(",)", ")")
    if op.kind == "expand":
        return f".expand{_shape(value.shape, symbols)}"
    return (
        f".view({_shape(value.shape, symbols)})"
        if not value.shape
        else f".view{_shape(value.shape, symbols)}".replace(",)", ")")
    )


def _call(step: Call, host: Host, names: Names, variables: dict[Value, str], symbols: Any) -> None:
    value = step.values[0]
    op = value.op
    assert isinstance(op, TorchCall)
    call = op.call or op
    texts = {s: t for s, (_, t) in symbols.items()}
    device = f"{host.parameters[0][0]}.device"

    def text(item: Any) -> str:
        if isinstance(item, Value):
            return variables[item]
        if isinstance(item, Scalar):
            return python(item.expr, texts)
        if isinstance(item, torch.device):
            return device
        if isinstance(item, list):
            return f"[{', '.join(text(i) for i in item)}]"
        if isinstance(item, tuple):
            return f"({', '.join(text(i) for i in item)}{',' if len(item) == 1 else ''})"
        return literal(item) if isinstance(item, float) else repr(item)

    arguments = [text(a) for a in call.args] + [f"{k}={text(v)}" for k, v in call.kwargs.items()]
    result = names.fresh(call.target.split(".")[-2] + "_result")
    host.body.append(f"{result} = {call.target}({', '.join(arguments)})")
    host.torch_calls += 1
    for v in step.values:
        assert isinstance(v.op, TorchCall)
        place = v.op.output
        variables[v] = result if place is None else names.fresh(f"{result}_{place}")
        chosen = result if place is None else f"{result}[{place}]"
        host.body.append(f"{variables[v]} = {chosen}.contiguous()")


def _result(graph: Graph, variables: dict[Value, str]) -> str:
    leaves = [variables[v] if isinstance(v, Value) else repr(v) for v in graph.output_leaves]

    def build(spec: Any, rest: list[str]) -> str:
        if spec.is_leaf():
            return rest.pop(0)
        children = spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs
        items = [build(c, rest) for c in children]
        if spec.type is tuple:
            text = f"{', '.join(items)}{',' if len(items) == 1 else ''}"
            return text if spec is graph.output_spec and items else f"({text})"
        if spec.type is list:
            return f"[{', '.join(items)}]"
        if spec.type is dict:
            return "{" + ", ".join(f"{k!r}: {i}" for k, i in zip(spec.context, items, strict=True)) + "}"
        kind = spec.context if isinstance(spec.context, type) else spec.type  # a named tuple's own name
        raise Unwritable("forward", f"the result is a {kind.__name__}, not a tensor, tuple, list or dict")

    return build(graph.output_spec, leaves)

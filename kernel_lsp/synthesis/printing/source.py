"""The generated file's body: imports, docstring, kernels, host function and the drop-in class."""

from __future__ import annotations

import functools
import inspect
import textwrap
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.rules import table_of
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.envelope.tree import counters
from kernel_lsp.envelope_constants import (
    CONSTANTS,
    LIBDEVICE,
    WITHOUT_LIBDEVICE,
    WITHOUT_SHORT_FLOATS,
    envelope_body,
)
from kernel_lsp.loading import import_lines
from kernel_lsp.naming import attribute, kernel_class, snake_case

from ..graph.build import FLOAT8
from ..graph.functions import FUNCTIONS
from ..graph.lowered import Assigned, Graph
from ..graph.monoids import MONOIDS
from ..graph.names import Names
from ..graph.value import Value, input_of
from ..kernel.execution_plan import Hints, Planned
from ..kernel.ir import Apply, Dot, PrefixScan
from ..schedule.choices import Chosen
from ..schedule.plan import host_plan
from ..schedule.program import Program, expressions
from . import bounds, helpers, kernel_summary, named_results, packed, replay
from .envelope import conditions, name_arguments
from .formula import ABOUT_LEFT_OUT, LEFT_OUT, definitions
from .host import Host, write
from .names import class_alias, function_name
from .tensors import listed

_WIDTH = 100


@dataclass(frozen=True)
class Written:
    """The kernels and the host function of one point of the schedule space, with what the class around them refers to."""

    host: Host
    function: str  # the host function's name
    signature: Signature
    base: str  # the class that the generated one derives from, as the file calls it
    alias: str
    checks: list[str]  # the envelope's conditions

    @functools.cached_property  # a file that replays has them, too
    def kernels(self) -> list[str]:
        """The kernels' definitions."""
        return [kernel.text for kernel in self.host.kernels.values()]

    @property
    def host_functions(self) -> list[str]:
        """The definitions of the host function, and before it of the one that packs weights for it."""
        packs = [_packing_function(packed.name_of(self.function), self.host)] if self.host.packed else []
        return [*packs, _host_function(self.function, self.host)]


def written(
    module: torch.nn.Module,
    exported: ExportedProgram,
    found: Planned,
    *,
    class_name: str,
    chosen: Chosen,
    check_indices: bool = False,
) -> Written:
    """The kernels and the host function for one point of the schedule space.

    Raises:
        Unwritable: forward's result, or a condition, has no text.
    """
    name = snake_case(class_name)
    signature = Signature(module, *exported.example_inputs)
    name_arguments(found.graph, signature)
    if hasattr(module, packed.METHOD):  # it would hide the class's own
        found.graph.keeps_packed_weights = False
    held = [*module.named_parameters(), *module.named_buffers()]
    scattered = frozenset(attribute(path) for path, tensor in held if not tensor.is_contiguous())
    outer, _, rest = class_name.partition(".")
    alias = class_alias(outer)
    base = f"{alias}.{rest}" if rest else alias
    function = function_name(name, [*inspect.signature(module.forward).parameters, outer])
    operations = host_plan(
        found.graph, found.plan, found.hints, found.chunks, found.defined, name, chosen, scattered, check_indices
    )
    host = write(operations, found.graph, function)
    checks = conditions(
        module,
        found.graph,
        signature,
        host.parameters,
        host.requires,
        contiguous=list(host.plan.contiguous),
        bounded=not host.plan.wide,
    )
    return Written(host, function, signature, base, alias, checks)


def compose(
    module: torch.nn.Module,
    found: Planned,
    made: Written,
    *,
    class_name: str,
    import_from: str,
    import_file: str,
    replayed: bool = False,
) -> str:
    """The complete source of ``<Class>Triton`` around what was written. ``replayed``: as a CUDA graph."""
    host, function, signature, checks = made.host, made.function, made.signature, made.checks
    graph, hints = found.graph, found.hints
    outer, plain = class_name.partition(".")[0], class_name.rsplit(".", 1)[-1]
    named = named_results.definitions(graph.output_spec, type(module).__module__, made.alias)
    records = named_results.has_dataclasses(graph.output_spec)
    ahead = replayed and replay.begins_ahead(_given(host), len(host.of_module), _counted(host, graph))
    standard = [*(replay.imports(ahead=ahead, records=records) if replayed else []), *(["import sys"] if named else [])]
    if host.packed and not replayed:
        standard.append(packed.IMPORT)
    own = [*named_results.imports(graph.output_spec), *import_lines(import_from, import_file, outer, made.alias)]
    said = _module_docstring(class_name, graph, host, hints, replayed, counters(module))
    parts = [said, _imports(host, own, standard)]
    constants = [*named, CONSTANTS["_DEVICE"], CONSTANTS["_PLAIN"]]
    if any(" < _MOST_ELEMENTS" in c for c in checks):
        constants.append(CONSTANTS["_MOST_ELEMENTS"])
    if any("bf16x6" in program.blocks.values() for program in host.programs):
        constants.append(
            '_BF16X6 = "ieee" if triton.knobs.runtime.interpret else "bf16x6"  # the interpreter has no bf16x6'
        )
    if any(_uses_library(program) for program in host.programs):
        constants.append(WITHOUT_LIBDEVICE)
    elif any(_multiplies_short_floats(program) for program in host.programs):
        constants.append(WITHOUT_SHORT_FLOATS)
    parts += [
        "\n".join(constants),
        *helpers.definitions(host.programs),
        *made.kernels,
        *([helpers.MULTIPROCESSORS] if any(program.in_turn for program in host.programs) else []),
        *([bounds.HELPER] if any("_check_indices(" in line for line in host.body) else []),
        *made.host_functions,
        *(_packing(function, host, replayed) if host.packed else []),
        *(_replays(class_name, function, host, graph, ahead, records) if replayed else []),
        _class(plain, made.base, host, signature, checks, function, replayed, ahead, graph),
    ]
    return "\n\n".join(parts) + "\n"


def _given(host: Host) -> list[str]:
    """The Python of what forward is given and the host function takes."""
    return [input_of(v).source for _, v in host.parameters if input_of(v).kind == "argument"]


def _packing(function: str, host: Host, replayed: bool) -> list[str]:
    names = [name for name, _ in host.of_module]
    places = [names.index(name) for name in host.packed_from]
    strides = any(_strides_vary(host, host.of_module[place][1]) for place in places)
    return packed.definitions(packed.name_of(function), places, strides=strides, replayed=replayed)


def _strides_vary(host: Host, value: Value) -> bool:
    """Whether the envelope leaves open how one of the module's tensors lies in memory."""
    return bool(value.shape) and all(value is not other for other in host.plan.contiguous)


def _replays(class_name: str, function: str, host: Host, graph: Graph, ahead: bool, records: bool) -> list[str]:
    strides = any(_strides_vary(host, v) for _, v in host.of_module)
    changes = bool(_counted(host, graph))
    torch_calls = host.torch_calls > 0
    packs = packed.name_of(function) if host.packed else ""
    return replay.definitions(
        class_name, torch_calls=torch_calls, strides=strides, changes=changes, ahead=ahead, records=records, packs=packs
    )


def _counted(host: Host, graph: Graph) -> list[int]:
    """The places, in what the module holds, of buffers whose version counters a call raises."""
    of_module = enumerate(v for _, v in host.of_module)
    return [i for i, v in of_module if v in graph.updates and input_of(v).source not in graph.uncounted]


#: what a file says of products that were rounded because the setting ``precision`` asked for it
_ROUNDED = {
    "tf32": "Asked for with precision = tf32: the operands of float32 products are rounded to ten bits of mantissa.",
    "half": "Asked for with precision = half: the operands of float32 products are rounded to float16 where its range "
    "suffices and that is faster, else to TF32.",
}
#: what is computed otherwise than the module's text says
_COLLAPSED = (
    "Computed before the linear operation that it follows in the module, which is less work and the same for any weights: {}. What is not "
    "finite may be NaN where the module gives infinity, and infinity where it gives NaN."
)


def _module_docstring(
    class_name: str, graph: Graph, host: Host, hints: Hints, replayed: bool, counted: list[str]
) -> str:
    count, launches = len(host.kernels), len(host.launches)
    kernels = "one Triton kernel" if count == 1 else f"{count} Triton kernels"
    if launches < len(host.programs):
        kernels += ", of which a call launches one" if launches == 1 else f", {launches} launches a call"
    elif launches > count:
        kernels += f" in {launches} launches"
    if host.torch_calls:
        kernels += f" and {host.torch_calls} torch call{'s' if host.torch_calls > 1 else ''}"
    lines = [f"{class_name} as {kernels}.", ""]
    formulas = [k.formula + (f"  (1 of {k.launches})" if k.launches > 1 else "") for k in host.kernels.values()]
    for text in dict.fromkeys(formulas):  # what seldom runs in a product's stead computes the same
        lines += textwrap.wrap(text, _WIDTH - 8, initial_indent="    ", subsequent_indent="        ")
    extra = definitions(" ".join(formulas))
    if extra:
        lines += ["", "where", ""]
        for text in extra:
            for number, line in enumerate(text.split("\n")):
                indent = " " * (8 if number else 4)
                lines += textwrap.wrap(line, _WIDTH - 8, initial_indent=indent, subsequent_indent=" " * 8)
    if any(LEFT_OUT in text for text in formulas):
        lines += ["", ABOUT_LEFT_OUT]
    lines += [""]
    lines += kernel_summary.tilings(host, _WIDTH)
    lines += textwrap.wrap(kernel_summary.precisions(host), _WIDTH)
    lines += textwrap.wrap(kernel_summary.traffic(graph, host, hints), _WIDTH)
    if graph.collapsed:
        lines += ["", *textwrap.wrap(_COLLAPSED.format(", ".join(dict.fromkeys(graph.collapsed))), _WIDTH)]
    if graph.precision != "strict":
        lines += ["", *textwrap.wrap(_ROUNDED[graph.precision], _WIDTH)]
    if host.packed:
        lines += ["", *packed.about(host.packed, _WIDTH)]
    if replayed:
        lines += ["", *textwrap.wrap(replay.ABOUT, _WIDTH)]
    if counted:
        lines += ["", *textwrap.wrap(kernel_summary.counters(counted), _WIDTH)]
    return '"""' + "\n".join(lines) + '\n"""'


def _imports(host: Host, of_the_class: list[str], standard: list[str]) -> str:
    """``standard``: the imports of Python's own modules."""
    lines = [*sorted(standard), ""] if standard else []
    lines += ["import torch", "import triton", "import triton.language as tl"]
    if any(_uses_library(program) or _multiplies_short_floats(program) for program in host.programs):
        lines.append(LIBDEVICE)
    return "\n".join([*lines, "", *of_the_class])


def _uses_library(program: Program) -> bool:
    """Whether its kernel or a helper that this calls needs libdevice."""
    found = list(expressions(program.body))
    applied = {expr.function for expr in found if isinstance(expr, Apply)}
    combined = {MONOIDS[expr.kind].combine for expr in found if isinstance(expr, PrefixScan)}
    return any(FUNCTIONS[function].library for function in applied | combined)


def _multiplies_short_floats(program: Program) -> bool:
    """Whether tiles of bfloat16 or float8 are multiplied. All else is converted to float32 before."""
    dots = [expr for expr in expressions(program.body) if isinstance(expr, Dot)]
    return any(
        getattr(tile, "dtype", None) in (torch.bfloat16, *FLOAT8) for dot in dots for tile in (dot.left, dot.right)
    )


def _packing_function(name: str, host: Host) -> str:
    body = "\n".join(f"    {line}" for line in host.packing)
    said = "Run what depends on parameters and buffers alone."
    return f'def {name}({", ".join(host.packed_from)}):\n    """{said}"""\n{body}'


def _host_function(name: str, host: Host) -> str:
    parameters = ", ".join([*(variable for variable, _ in host.parameters), *host.packed])
    what = "Run the kernel." if len(host.kernels) == 1 else "Run the kernels in order."
    if len(host.launches) == 1 < len(host.kernels):
        what = "Run the kernel for these sizes."
    body = "\n".join(f"    {line}" for line in host.body)
    said = f"{what} The tensors have to be in the envelope of the class below."
    if host.checks_indices:
        said += "\n\n    Raises IndexError where an index is out of range, before the kernel that reads by it.\n    "
    return f'def {name}({parameters}):\n    """{said}"""\n{body}'


def _class(
    plain: str,
    base: str,
    host: Host,
    signature: Signature,
    checks: list[str],
    name: str,
    replayed: bool,
    ahead: bool,
    graph: Graph,
) -> str:
    declared = ", ".join(["self", *signature.parameters])
    passed = ", ".join(signature.names)
    given = _given(host)
    state = [(variable, input_of(v).source) for variable, v in host.of_module]
    inside = f"self._in_envelope({passed})"
    first, test = f"if not {inside}:", "Whether the kernels were validated for such arguments, parameters and settings."
    names = Names({name, *signature.names})
    held = names.fresh("held") if state else ""
    begun = names.fresh("begun") if ahead else ""
    if state:  # looked up once: nn.Module takes one or two microseconds for each
        asked = "\n".join(checks)
        named = [n if f"({n} := " in asked else source for n, source in state]
        table = table_of(checks)
        read = table or listed(named)
        checks = [*checks, "# what the kernels read", read]
        first = f"{held} = {inside}\n        if not {held}:"
        test = "The module's tensors that the kernels read; False outside of what was validated."
    packs = [packed.argument(held)] if host.packed else []
    run = f"{name}({', '.join([*given, *([f'*{held}'] if state else []), *packs])})"
    if replayed:
        run = replay.call(name, given, held or "()", _counted(host, graph), begun)
    if ahead:
        first = f"{begun} = {replay.beginning(given)}\n        {first}"
    return f'''class {kernel_class(plain)}({base}):
    """{plain}: the kernel where it was validated, eager elsewhere."""

    def forward({declared}):
        {first}
            return super().forward({passed})
        {_ending(run, graph.assigned)}

    def _in_envelope({declared}):
        """{test}"""
{textwrap.indent(envelope_body(checks), "        ")}{packed.METHOD_TEXT if host.packed else ""}'''


def _ending(run: str, assigned: list[Assigned]) -> str:
    """The end of forward: it returns what ``run`` gives, and assigns attributes what the module's forward does."""
    if not assigned:
        return f"return {run}"
    made = ["result", *(one.source for one in assigned if one.leaf is not None)]
    others = [one for one in assigned if one.leaf is None]
    values = [run, *("None" if one.same is None else input_of(one.same).source for one in others)]
    inner = made[0] if len(made) == 1 else ", ".join(made)
    if others:  # all at once: what is assigned may be what another attribute held
        inner = ", ".join([f"({inner})" if len(made) > 1 else inner, *(one.source for one in others)])
    return f"{inner} = {', '.join(values)}\n        return result"

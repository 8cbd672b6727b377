"""The host function of a generated file: a host plan as Python."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from kernel_lsp.envelope.empty_sizes import divisor_conditions, may_vanish
from kernel_lsp.size_text import python, unwrapped

from ..graph.functions import literal
from ..graph.lowered import Graph
from ..graph.names import Names, variable_name
from ..graph.sizes import same, same_shape
from ..graph.value import AS_REAL, Contract, Input, Scalar, TorchCall, Value, input_of, numel, operands, viewed
from ..kernel.execution_plan import Kernel, hint
from ..schedule.packed import packed_operations, read_by, written_by
from ..schedule.plan import (
    MOST_ELEMENTS,
    Allocate,
    CallTorch,
    CheckIndices,
    Contiguous,
    DefineSize,
    HostPlan,
    InPlace,
    Launch,
    TakeView,
    Update,
)
from ..schedule.program import Blocks, Factor, OfAll, PowerOfTwo, Program
from . import bounds, tensors
from .formula import ABOUT_LEFT_OUT, LEFT_OUT, formulas
from .launch_numbers import constant, fits, grid_factors, host_size, runs_at_once
from .returned import returned
from .sharing import form
from .single_steps import has_loop, has_single_step
from .triton import constants, definition, kernel_names, sizes_and_scalars

#: programs along the second and third dimension of CUDA's grid (CUDA C++ Programming Guide, compute capabilities)
_MOST_PROGRAMS = 65535


@dataclass
class Function:
    """A kernel of the file, the formula of its first launch, and how many launches there are.

    ``forms``: those that the launches would have without their loops of a single step; where they differ, the loops stay.
    """

    program: Program
    formula: str
    launches: int = 0
    forms: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        """The kernel's definition, with its formula and tiling as docstring."""
        head = textwrap.wrap(f"{self.formula}.", 92)
        about = textwrap.wrap(f"{self.program.tiling} {self.program.axes}", 92)
        if LEFT_OUT in self.formula:
            about.append(ABOUT_LEFT_OUT)
        if self.launches > 1:
            about.append(f"{self.launches} launches, each of other tensors: the formula is the first one's.")
        return definition(self.program, "\n    ".join([*head, "", *about, ""]), looped=len(self.forms) > 1)


@dataclass
class Host:
    """What was written: ``parameters`` of the host function with the Values they hold, its body, the kernels.

    ``tilings``: of each launch the name of its kernel, and the sentence on how it is tiled. ``variables``: what holds a value in the end.
    ``packing``: what depends on parameters and buffers alone, where that is kept from call to call; empty where nothing is.
    """

    plan: HostPlan
    parameters: list[tuple[str, Value]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    kernels: dict[str, Function] = field(default_factory=dict)  # by form, see sharing
    tilings: list[tuple[str, str]] = field(default_factory=list)
    variables: dict[Value, str] = field(default_factory=dict)
    requires: list[str] = field(default_factory=list)
    checks_indices: bool = False
    packing: list[str] = field(default_factory=list)  # the body of the function that packs weights
    packed_places: list[int] = field(default_factory=list)  # of the plan's operations that it does
    packed_values: list[Value] = field(default_factory=list)  # what that computes
    packed: list[str] = field(default_factory=list)  # what that returns, which the host function is given last
    packed_from: list[str] = field(default_factory=list)  # those parameters that it is given

    @property
    def of_module(self) -> list[tuple[str, Value]]:
        """Those parameters that the module holds."""
        return [(name, v) for name, v in self.parameters if input_of(v).kind != "argument"]

    @property
    def programs(self) -> list[Program]:
        """Those of every launch, also where a call launches one of two."""
        return [program for operation in self.launches for program in operation.programs]

    @property
    def launches(self) -> list[Launch]:
        """Those of a call, in order."""
        return [operation for operation in self.plan.operations if isinstance(operation, Launch)]

    @property
    def torch_calls(self) -> int:
        """Operators that the host function calls in torch."""
        calls = [operation for operation in self.plan.operations if isinstance(operation, CallTorch)]
        return sum(not operation.is_view for operation in calls)


def write(plan: HostPlan, graph: Graph, function: str) -> Host:
    """Write the host function ``function`` for a plan."""
    printer = _Printer(plan, graph, function)
    packs = packed_operations(plan, graph) if graph.keeps_packed_weights else []
    printer.host.packed_places = packs
    read = {viewed(value) for place in packs for value in read_by(plan.operations[place])}
    printer.first_packed = next((printer.variables[value] for value in plan.inputs if value in read), "")
    for place, operation in enumerate(plan.operations):
        printer.packs = place in packs
        printer.operation(operation)
    printer.packs = False
    given = {v: name for name, v in printer.host.parameters if input_of(v).kind == "attribute"}
    printer.body.append(f"return {returned(graph, plan, printer.variables | given, printer.sizes)}")
    if packs:
        printer.pass_packed([value for place in packs for value in written_by(plan.operations[place])])
    return printer.host


class _Printer:
    def __init__(self, plan: HostPlan, graph: Graph, function: str) -> None:
        self.host = Host(plan)
        self.hints, self.uncounted = graph.hints, graph.uncounted
        self.names = Names([function, *(program.name for program in self.host.programs)])
        self.variables = self.host.variables
        for value in plan.inputs:
            self.variables[value] = self.names.fresh(variable_name(value))
            self.host.parameters.append((self.variables[value], value))
        self.updated = {one.buffer: self.variables[one.buffer] for one in plan.operations if isinstance(one, Update)}
        self.sizes = self._sizes(plan, self.variables)
        # The same in terms of forward's arguments, for the envelope.
        self.given = self._sizes(plan, {v: input_of(v).source for v in plan.inputs})
        self.kernel_names = Names(self.variables.values())
        self.checked: set[str] = set()
        self.packs, self.first_packed = False, ""  # whether what is written now packs weights; a tensor that this reads
        if graph.precision == "strict" and any(_tf32(one.kernel) for one in plan.operations if isinstance(one, Launch)):
            self.host.requires.append("torch.backends.cudnn.allow_tf32")  # else torch's convolutions are more exact

    @property
    def body(self) -> list[str]:
        """Where statements are written to."""
        return self.host.packing if self.packs else self.host.body

    @property
    def first(self) -> str:
        """The variable of a tensor on the device of all."""
        return self.first_packed if self.packs else self.host.parameters[0][0]

    def pass_packed(self, values: list[Value]) -> None:
        """Give the host function those of the packed ``values`` that it reads."""
        host, self.host.packed_values = self.host, values
        made, read = ({*re.findall(r"\w+", "\n".join(lines))} for lines in (host.packing, host.body))
        names = dict.fromkeys(self.variables[value] for value in values)
        host.packed = [name for name in names if name in read]
        host.packed_from = [name for name, _ in host.of_module if name in made]
        host.packing.append(f"return {tensors.listed(host.packed)}")

    @staticmethod
    def _sizes(plan: HostPlan, names: dict[Value, str]) -> dict[sympy.Symbol, str]:
        """Python for each size symbol, where ``names`` hold the inputs."""
        texts: dict[sympy.Symbol, str] = {}
        for symbol, place in plan.sizes.items():
            if isinstance(place, Blocks):
                texts[symbol] = f"triton.cdiv({python(place.extent, texts)}, {place.size})"
            elif isinstance(place, sympy.Basic):
                texts[symbol] = f"({python(place, texts)})"
            else:
                texts[symbol] = f"{names[place[0]]}.shape[{place[1]}]"
        return texts

    def operation(self, operation: Any) -> None:
        if isinstance(operation, Contiguous):
            name = given = self.variables[operation.value]
            if operation.value in self.updated or input_of(operation.value).kind == "attribute":
                # forward changes the one that was given, or returns it
                name = self.variables[operation.value] = self.names.fresh(f"{given}_contiguous")
            self.body.append(f"{name} = {given}.contiguous()")
        elif isinstance(operation, DefineSize):
            self._define(operation.symbol)
        elif isinstance(operation, Allocate):
            self._allocate(operation)
        elif isinstance(operation, Launch):
            self._launch(operation)
        elif isinstance(operation, TakeView):
            (operand,) = operands(operation.value)
            self.variables[operation.value] = f"{self.variables[operand]}{tensors.view(operation.value, self.sizes)}"
        elif isinstance(operation, InPlace):
            buffer = self.variables[operation.value] = self.variables[operation.buffer]
            # An operator that changes a tensor in place counts that, and a backward that has saved the tensor raises an error then.
            if input_of(operation.buffer).source not in self.uncounted:
                self.body.append(f"torch.autograd.graph.increment_version({buffer})")
        elif isinstance(operation, Update):
            self.body.append(f"{self.updated[operation.buffer]}.copy_({self.variables[operation.value]})")
        elif isinstance(operation, CheckIndices):
            self.body.extend(bounds.statements(operation.kernel, self.variables, self.sizes, self.checked))
            self.host.checks_indices = bool(self.checked)
        else:
            self._call(operation)

    def _define(self, symbol: sympy.Symbol) -> None:
        size = self.host.plan.sizes[symbol]
        assert isinstance(size, sympy.Basic)
        self._require_divisors(size)
        text = unwrapped(size, self.sizes)
        self.sizes[symbol] = self.names.fresh(symbol.name)
        self.body.append(f"{self.sizes[symbol]} = {text}")

    # -- memory -----------------------------------------------------------------------------------------------------

    def _allocate(self, operation: Allocate) -> None:
        value = operation.value
        # For windows that do not fit eager raises an error, a slice of more than there is has none: the kernels run for sizes as
        # those that they were written for, which may have been zero.
        for size in value.shape:
            if not size.is_number and may_vanish(size):
                self._require_divisors(size)
                self._require(f"{python(size, self.given)} {'>' if hint(size, self.hints) else '>='} 0")
        plain = operation.alone and value.meaning is None and not (value.name or value.module)
        variable = self.names.fresh("out" if plain else variable_name(value))
        zeros = (
            f"torch.zeros({tensors.shape(value.shape, self.sizes)}, device={self.first}.device, dtype={value.dtype})"
        )
        self.body.append(f"{variable} = {zeros if operation.zero else self._empty(value)}")
        self.variables[value] = variable

    def _empty(self, value: Value) -> str:
        """An uninitialised buffer for ``value``."""
        for name, other in self.host.parameters:
            if (
                not self.packs
                and other.dtype == value.dtype
                and value.shape
                and input_of(other).kind == "argument"
                and same_shape(other.shape, value.shape)
            ):
                return f"torch.empty_like({name}, memory_format=torch.contiguous_format)"
        return f"torch.empty({tensors.shape(value.shape, self.sizes)}, device={self.first}.device, dtype={value.dtype})"

    # -- launches ---------------------------------------------------------------------------------------------------

    def _launch(self, operation: Launch) -> None:
        kernel = operation.kernel
        told = [*(whole for whole, _ in kernel.stores), *kernel.peaks] if kernel.partials else kernel.outputs
        pairs = [(self.variables[v], w) for v, w in zip(kernel.outputs, told, strict=True) if v in self.variables]
        if kernel.one_piece:
            pairs[0] = (tensors.piece(kernel, self.variables, self.sizes), kernel.results[0])
        text = formulas(pairs, self.variables, self.given)
        if kernel.partials:
            text += ", chunk by chunk" if kernel.contract is None else ", tile by tile"
        known: dict[sympy.Expr, str] = {}  # compound sizes, which get a variable first
        launches = []
        for program in operation.programs:
            function = self._function(program, text)
            launches.append(self._launched(program, function.program, known))
            self.host.tilings.append((function.program.name, program.tiling))
        if operation.beyond is not None:
            condition = fits(operation.program, self.sizes, known, f"{self.first}.device")
            launches = [f"if {condition}:", f"    {launches[0]}", "else:", f"    {launches[1]}"]
        self.body.extend(launches)
        for program in operation.programs:
            self._require_limits(program, chooses=program is not operation.programs[-1])
            for factors in program.grid[1:]:
                self._require_few(factors)

    def _function(self, program: Program, formula: str) -> Function:
        """The kernel that is launched for ``program``."""
        kernels = self.host.kernels
        key = form(definition(program, "", looped=True))
        without_loops = form(definition(program, "")) if has_single_step(program) else key
        if key not in kernels:
            kernels[key] = Function(dataclasses.replace(program, name=self.kernel_names.fresh(program.name)), formula)
        kernels[key].launches += 1
        kernels[key].forms.add(without_loops)
        return kernels[key]

    def _require_limits(self, program: Program, *, chooses: bool) -> None:
        """What sizes ``program`` takes. ``chooses``: another is launched where they are larger."""
        for extent, most in program.limits:
            self._require_divisors(extent)
            size = python(extent, self.given)
            # A tile grows with a size that is limited: a tile of nothing there is not.
            grows = any(isinstance(c, PowerOfTwo) and c.extent == extent for c in program.blocks.values())
            some = grows and may_vanish(extent)
            if not chooses:
                limit = f"{size} {'< _MOST_ELEMENTS' if most == MOST_ELEMENTS else f'<= {most}'}"
                self._require(f"0 < {limit}" if some else limit)
            elif some:
                self._require(f"0 < {size}")
        if program.in_turn and not chooses:
            self._require(runs_at_once(program, self.given, {}, "device"))

    def _launched(self, program: Program, function: Program, known: dict[sympy.Expr, str]) -> str:
        """The statement that runs ``program``, after the host function's body has what it needs.

        ``function``: the same kernel, or one that differs from it in names alone and is launched in its place. ``known``: the variables of
        compound sizes; grows by those that it needs.
        """
        arguments = program.arguments
        sizes = dict(self.sizes)
        sizes |= {
            s: f"{self.variables[v]}.stride({d})" for s, (v, d) in arguments.strides.items() if v in self.variables
        }
        inside = kernel_names(program)
        given = []
        for expr, variable in arguments.sizes.items():
            self._require_divisors(expr)
            text = known.get(expr) or self._numel(expr, program) or unwrapped(expr, sizes)
            if " " in text or "numel" in text:
                known[expr] = self.names.fresh(inside[variable])
                self.body.append(f"{known[expr]} = {text}")
                text = known[expr]
            given.append(text)
        compiled = f"isinstance({function.name}, triton.JITFunction)"
        shared: dict[OfAll, str] = {}  # sizes that are others under the interpreter
        for variable, value in program.blocks.items():
            if isinstance(value, OfAll):
                shared[value] = str(value.size)
                if value.alone != value.size:
                    shared[value] = self.names.fresh(variable.wanted.lower())
                    why = "the interpreter runs one program after another"
                    alone = constant(value.alone, sizes, known, shared)
                    self.body.append(f"{shared[value]} = {value.size} if {compiled} else {alone}  # {why}")
        grid = ", ".join(" * ".join(grid_factors(factors, sizes, known, shared)) for factors in program.grid)
        grid = f"min({grid}, {program.programs})" if program.programs else grid
        if program.in_turn:
            programs = self.names.fresh("programs")
            self.body.append(f"{programs} = {grid} if {compiled} else 1")
            grid = programs
        values = [
            *map(str, arguments.static),
            *(host_size(expr, sizes, known) for expr in arguments.divisors),
            *(constant(value, sizes, known, shared) for value in program.blocks.values()),
        ]
        numbers = [*given, *(python(expr, sizes) for expr in arguments.scalars)]
        passed = [
            *(self.variables[v] for v in (*arguments.pointers, *arguments.outputs)),
            *(f"{name}={value}" for name, value in zip(sizes_and_scalars(function), numbers, strict=True)),
            *(f"{name}={value}" for name, value in zip(constants(function), values, strict=True)),
            f"num_warps={program.num_warps}",
        ]
        if program.num_stages is not None and has_loop(program):
            passed.append(f"num_stages={program.num_stages}")
        if program.registers:
            passed.append(f"maxnreg={program.registers}")
        if program.together:
            passed.append("launch_cooperative_grid=True")
        return f"{function.name}[({grid},)]({', '.join(passed)})"

    def _numel(self, size: sympy.Expr, program: Program) -> str:
        """``out.numel()`` for a size that is as many elements as a tensor has that the kernel stores; "" for others."""
        for value in program.arguments.outputs:
            if value in self.variables and size.is_Mul and same(size, numel(value.shape)):
                return f"{self.variables[value]}.numel()"
        return ""

    def _require(self, condition: str) -> None:
        if condition not in self.host.requires:
            self.host.requires.append(condition)

    def _require_few(self, factors: list[Factor]) -> None:
        """A second or third dimension of a grid may have ``_MOST_PROGRAMS`` at most."""
        texts = []
        for factor in factors:
            extent = factor.extent if isinstance(factor, Blocks | OfAll) else factor
            if extent.is_number:
                continue
            self._require_divisors(extent)
            text = python(extent, self.given)
            if isinstance(factor, Blocks):
                text = f"triton.cdiv({text}, {factor.size})"
            texts.append(f"({text})" if " " in text and len(factors) > 1 and not isinstance(factor, Blocks) else text)
        if texts:
            self._require(f"{' * '.join(texts)} <= {_MOST_PROGRAMS}")

    def _require_divisors(self, size: sympy.Expr) -> None:
        for condition in divisor_conditions(size, self.given):
            self._require(condition)

    # -- torch ------------------------------------------------------------------------------------------------------

    def _call(self, operation: CallTorch) -> None:
        op = operation.values[0].op
        assert isinstance(op, TorchCall)
        if operation.is_view:
            (value,) = operation.values
            self.variables[value] = self.names.fresh(variable_name(value))
            seen = self._argument(op.args[0])
            if op.target == AS_REAL:  # what torch gives may be conjugated when it is read, and have gaps
                given = isinstance(op.args[0].op, Input)
                seen = f"{op.target}({seen}{'' if given else '.resolve_conj()'}).contiguous()"
            else:
                seen = f"{op.target}({seen})"
            self.body.append(f"{self.variables[value]} = {seen}")
            return
        call = op.call or op
        arguments = [self._argument(a) for a in call.args]
        arguments += [f"{k}={self._argument(v)}" for k, v in call.kwargs.items()]
        result = self.names.fresh(call.target.split(".")[-2] + "_result")
        self.body.append(f"{result} = {call.target}({', '.join(arguments)})")
        for v in operation.values:
            assert isinstance(v.op, TorchCall)
            place = v.op.output
            self.variables[v] = result if place is None else self.names.fresh(f"{result}_{place}")
            chosen = result if place is None else f"{result}[{place}]"
            if v.op.order is not None:
                chosen += f".permute{v.op.order}"
            # A weight that is kept must not share its memory with a parameter.
            own = ".clone(memory_format=torch.contiguous_format)" if self.packs else ".contiguous()"
            self.body.append(f"{self.variables[v]} = {chosen}{own}")

    def _argument(self, item: Any) -> str:
        if isinstance(item, Value):
            return self.variables[item]
        if isinstance(item, Scalar):
            return python(item.expr, self.sizes)
        if isinstance(item, torch.device):
            return f"{self.first}.device"
        if isinstance(item, list):
            return f"[{', '.join(self._argument(i) for i in item)}]"
        if isinstance(item, tuple):
            return tensors.listed([self._argument(i) for i in item])
        return literal(item) if isinstance(item, float) else repr(item)


def _tf32(kernel: Kernel) -> bool:
    """Whether it rounds as torch's convolutions may."""
    op = None if kernel.contract is None else kernel.contract.op
    return isinstance(op, Contract) and (op.tf32 or (op.exact is not None and op.exact.tf32))

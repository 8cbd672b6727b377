"""A scheduled kernel as Triton: names, precedence and line breaks are decided here and nowhere else."""

from __future__ import annotations

import math
import textwrap

import torch

from ..graph.functions import ATOM, FUNCTIONS, SHIFT, SUM, UNARY, least_precedences, literal, wrap
from ..graph.monoids import MONOIDS
from ..graph.names import Names
from ..kernel.ir import (
    Apply,
    Arange,
    AxisIndex,
    Dot,
    Expr,
    FoldAxis,
    Full,
    Grouped,
    Item,
    Items,
    Joined,
    Load,
    Number,
    PrefixScan,
    ProgramId,
    Ref,
    Variable,
    conjuncts,
)
from ..kernel.statements import (
    Add,
    Arrive,
    Await,
    Barrier,
    Comment,
    Leave,
    Set,
    Split,
    Statement,
    Store,
    TakeTurn,
    When,
    While,
)
from ..schedule.program import Program
from . import helpers, index_parts, phase_starts, place_names, shared_pointers, single_steps, size_names

#: Columns of a line with a comment, which no formatter breaks.
_COMMENT = 88

#: Words that Triton has for dtypes, where they differ from torch's.
_DTYPES = {torch.bool: "tl.int1", torch.float8_e4m3fn: "tl.float8e4nv", torch.float8_e5m2: "tl.float8e5"}


def definition(program: Program, docstring: str, *, looped: bool = False) -> str:
    """The kernel's definition. ``looped``: with loops of a single step, too."""
    printer = Printer(program, looped=looped)
    parameters = [printer.names[v] for v in program.parameters()]
    parameters += [f"{name}: tl.constexpr" for name in constants(program)]
    lines = ["@triton.jit", f"def {program.name}({', '.join(parameters)}):", f'    """{docstring}"""']
    return "\n".join([*lines, *printer.block(printer.body, 1)])


def constants(program: Program) -> list[str]:
    """The names of its constexpr parameters."""
    names = kernel_names(program)
    return [names[v] for v in program.constants()]


def sizes_and_scalars(program: Program) -> list[str]:
    """The names of its parameters that are numbers and no constexpr, in the order of the signature."""
    names, arguments = kernel_names(program), program.arguments
    return [names[v] for v in (*arguments.sizes.values(), *arguments.scalars.values())]


def kernel_names(program: Program, further: list[Variable] | None = None) -> dict[Variable, str]:
    """Names in the order in which they were wanted. The kernel's own first: nothing inside may hide it.

    ``further``: variables beside those of the program.
    """
    names = Names([program.name])
    result = {v: names.fresh(v.wanted) for v in [*program.arguments.variables, *(further or [])]}
    return result | {v: v.wanted for v in program.blocks}


class Printer:
    """Writes the statements and expressions of one kernel as Triton, under the names that its variables get."""

    def __init__(self, program: Program, *, looped: bool = False) -> None:
        body = program.body if looped else single_steps.written_out(program)
        body, parts = index_parts.named(program, body)
        body, sizes = size_names.named(program, body)
        body, places = place_names.named(body)
        self.body, firsts = phase_starts.named(body)
        self.shared = {shared.pointer: shared for shared in shared_pointers.found(self.body)}
        self.begun: set[Variable] = set()  # the pointers of which the shared part has its name by now
        self.names = kernel_names(
            program, [*parts, *sizes, *places, *firsts, *(shared.variable for shared in self.shared.values())]
        )
        self.wide = program.wide

    def name(self, variable: Variable) -> str:
        """A variable's name in the text; a fixed one keeps its own."""
        return variable.wanted if variable.fixed else self.names[variable]

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, statements: list[Statement] | tuple[Statement, ...], depth: int) -> list[str]:
        """The lines of statements, indented ``depth`` times."""
        lines: list[str] = []
        for statement in statements:
            for pointer, shared in self.shared.items():
                if shared.first is statement:
                    lines.append(
                        f"{'    ' * depth}{self.name(shared.variable)} = {self.pointer(pointer, shared.offset)}"
                    )
                    self.begun.add(pointer)
            lines += self.statement(statement, depth)
        self.begun -= {shared.pointer for shared in self.shared.values() if any(shared.first is s for s in statements)}
        return lines

    def statement(self, statement: Statement, depth: int) -> list[str]:
        """The lines of one statement; of a loop with its body."""
        indent = "    " * depth
        if isinstance(statement, Set):
            return [f"{indent}{self.name(statement.variable)} = {self.text(statement.value)}"]
        if isinstance(statement, Add):
            return [f"{indent}{self.name(statement.variable)} += {self.text(statement.value)}"]
        if isinstance(statement, Store):
            where = self.pointer(statement.pointer, statement.offset)
            function = "atomic_max" if statement.atomic else "store"
            return [f"{indent}tl.{function}({where}, {self.text(statement.value)}{self.masks(statement.masks)})"]
        if isinstance(statement, Leave):
            return [f"{indent}if {self.text(statement.condition)}:", f"{indent}    return"]
        if isinstance(statement, Split):
            names = ", ".join("_" if v is None else self.name(v) for v in statement.variables)
            shape = ", ".join(self.name(v) for v in statement.shape)
            return [
                f"{indent}{names} = {helpers.SPLITS[len(statement.variables)][0]}({self.text(statement.value)}, {shape})"
            ]
        if isinstance(statement, Comment):
            return textwrap.wrap(
                statement.text, _COMMENT, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
            )
        if isinstance(statement, Barrier):
            return [f"{indent}tl.debug_barrier()"]
        if isinstance(statement, Arrive):
            return [f"{indent}_arrive({self.pointer(statement.pointer, statement.offset)})"]
        if isinstance(statement, Await):
            where = self.pointer(statement.pointer, statement.offset)
            return [f"{indent}_wait_for({where}, {self.text(statement.count)})"]
        if isinstance(statement, TakeTurn):
            where = self.pointer(statement.pointer, statement.offset)
            return [f"{indent}{self.name(statement.variable)} = tl.atomic_add({where}, 1)"]
        if isinstance(statement, When | While):
            word = "if" if isinstance(statement, When) else "while"
            return [f"{indent}{word} {self.text(statement.condition)}:", *self.block(statement.body, depth + 1)]
        if statement.step is None:
            head = f"{indent}for {self.name(statement.variable)} in tl.static_range({self.text(statement.end)}):"
            return [head, *self.block(statement.body, depth + 1)]
        bounds = [statement.end] if statement.begin == Number(0) else [statement.begin, statement.end]
        if isinstance(statement.step, Variable):
            bounds = [statement.begin, statement.end, Ref(statement.step)]
        texts = list(map(self.text, bounds))
        if statement.in_order and self.wide:  # offsets of 64 bits are computed of the step
            texts[-1] = f"tl.cast({texts[-1]}, tl.int64)"
        head = f"{indent}for {self.name(statement.variable)} in range({', '.join(texts)}):"
        return [head, *self.block(statement.body, depth + 1)]

    # -- expressions ------------------------------------------------------------------------------------------------

    def text(self, expr: Expr) -> str:
        """An expression, without parentheses around it."""
        return self.expression(expr)[0]

    def expression(self, expr: Expr) -> tuple[str, int]:
        """The expression's text and its precedence."""
        if isinstance(expr, Number):
            negative = not isinstance(expr.value, bool) and str(literal(expr.value))[0] == "-"
            return literal(expr.value), UNARY if negative else ATOM
        if isinstance(expr, Ref):
            return self.name(expr.variable), ATOM
        if isinstance(expr, AxisIndex):
            return f"{self.name(expr.axis.variable)}{_lane(expr.axis.lane)}", ATOM
        if isinstance(expr, Apply) and expr.function == "offset" and not self.wide:
            return self.expression(expr.operands[0])
        if isinstance(expr, Apply) and expr.function.startswith("to_") and not _has_tensors(expr):
            return f"tl.full((), {self.text(expr.operands[0])}, {_dtype(expr.dtype)})", ATOM
        if isinstance(expr, Apply):
            function = FUNCTIONS[expr.function]
            least = least_precedences(expr.function, expr.dtype.is_floating_point)
            parts = zip(expr.operands, least, strict=True)
            exact = expr.dtype == torch.float64 and _of_tensors(expr)
            # of two numbers to choose from, one makes the other float64, too
            chosen = expr.operands[1] if expr.function == "where" else None
            texts = [
                _in_float64(part.value, part is chosen)
                if exact and isinstance(part, Number)
                else self.within(part, least)
                for part, least in parts
            ]
            return function.text.format(*texts), function.precedence
        return self.call(expr), ATOM

    def within(self, expr: Expr, least: int) -> str:
        """The expression where an operator of precedence ``least`` stands around it."""
        return wrap(*self.expression(expr), least)

    def call(self, expr: Expr) -> str:
        """An expression that is written as a call of Triton's."""
        if isinstance(expr, Load):
            number = _in_float64(expr.other) if expr.dtype == torch.float64 else literal(expr.other)
            other = f", other={number}" if expr.masks else ""
            cache = f', cache_modifier="{expr.cache}"' if expr.cache else ""
            return f"tl.load({self.pointer(expr.pointer, expr.offset)}{self.masks(expr.masks)}{other}{cache})"
        if isinstance(expr, FoldAxis):
            return self.fold(expr)
        if isinstance(expr, Grouped):
            sizes = [self.name(size) for size in expr.shape]
            sizes.insert(expr.place + 1, str(expr.length))
            return f"{self.within(expr.operand, ATOM)}.reshape({', '.join(sizes)})"
        if isinstance(expr, PrefixScan):
            monoid, operand = MONOIDS[expr.kind], self.text(expr.operand)
            if monoid.scan:
                return f"{monoid.scan}({operand}, axis={expr.place})"
            return f"tl.associative_scan({operand}, {expr.place}, {helpers.name(monoid.combine)})"
        if isinstance(expr, ProgramId):
            return f"tl.program_id({expr.place}){'.to(tl.int64)' if self.wide else ''}"
        if isinstance(expr, Items):
            return f"({', '.join(map(self.text, expr.tiles))}{',' * (len(expr.tiles) == 1)})"
        if isinstance(expr, Item):
            return f"{self.text(expr.items)}[{self.text(expr.place)}]"
        if isinstance(expr, Arange):
            return f"tl.arange(0, {self.name(expr.size)}){_lane(expr.lane)}"
        if isinstance(expr, Full):
            shape = f"[{', '.join('1' if v is None else self.name(v) for v in expr.shape)}]"
            if expr.value == 0:
                return f"tl.zeros({shape}, dtype={_dtype(expr.dtype)})"
            return f"tl.full({shape}, {literal(expr.value)}, dtype={_dtype(expr.dtype)})"
        if isinstance(expr, Joined):
            shape = ", ".join(self.name(size) for size in expr.shape)
            return f"tl.reshape(tl.join(tl.trans({self.text(expr.even)}), tl.trans({self.text(expr.odd)})), [{shape}])"
        assert isinstance(expr, Dot)
        precision = f", input_precision={self.name(expr.precision)}" if expr.precision else ""
        short = f", max_num_imprecise_acc={self.name(expr.short)}" if expr.short else ""
        total = f", {self.text(expr.total)}" if isinstance(expr.total, Ref) else ""
        return f"tl.dot({self.text(expr.left)}, {self.text(expr.right)}{total}{precision}{short})"

    def fold(self, expr: FoldAxis) -> str:
        """A reduction; where a NaN has to be kept, beside a test for one, since Triton's drop it."""
        axis = f"axis={expr.place}{', keep_dims=True' if expr.keep else ''}"
        operand = self.text(expr.operand)
        nan = f"({operand} != {operand}).to(tl.int32)"
        any_nan = f"tl.max({nan}, {axis}) > 0"
        if expr.kind in ("argmax", "argmin"):
            tie = f"axis={expr.place}, tie_break_left=True{', keep_dims=True' if expr.keep else ''}"
            found = f"tl.{expr.kind}({operand}, {tie})"
            return f"tl.where({any_nan}, tl.argmax({nan}, {tie}), {found})" if expr.keeps_nan else found
        found = f"tl.{_FOLDS.get(expr.kind, expr.kind)}({operand}, {axis})"
        return f'tl.where({any_nan}, float("nan"), {found})' if expr.keeps_nan else found

    def pointer(self, pointer: Variable, offset: Expr) -> str:
        """``pointer + offset``, without an offset of 0."""
        if pointer in self.begun:
            shared = self.shared[pointer]
            if offset == shared.offset:
                return self.name(shared.variable)
            if (rest := shared.rest(offset)) is not None:
                return f"{self.name(shared.variable)} + {self.within(rest, SUM)}"
        if offset == Number(0):
            return self.name(pointer)
        return f"{self.name(pointer)} + {self.within(offset, SUM)}"

    def masks(self, masks: tuple[Expr, ...]) -> str:
        """The argument ``mask=`` of a load or store, with a comma before it; nothing without masks."""
        parts = [part for mask in masks for part in conjuncts(mask)]
        if len(parts) == 1:
            return f", mask={self.text(parts[0])}"
        return f", mask={' & '.join(self.within(part, SHIFT) for part in parts)}" if parts else ""


def _of_tensors(expr: Apply) -> bool:
    """Whether Triton makes tensors of a function's numbers before it knows the dtype: of those of a call, and where ``where`` has two."""
    if expr.function == "where":
        return all(isinstance(part, Number) for part in expr.operands[1:])
    return FUNCTIONS[expr.function].text.startswith(("tl.", "libdevice.", "_"))


def _has_tensors(expr: Expr) -> bool:
    """Whether it is made of anything but numbers, which Python computes with: ``0 << 2`` has no ``.to``."""
    return any(map(_has_tensors, expr.operands)) if isinstance(expr, Apply) else not isinstance(expr, Number)


def _in_float64(number: float | int | bool, always: bool = False) -> str:
    """A number where Triton would make a tensor of it: of float32, where it is in that range, which may round it."""
    rounded = (
        isinstance(number, float)
        and math.isfinite(number)
        and torch.tensor(number, dtype=torch.float32).item() != number
    )
    return f"tl.full((), {literal(number)}, tl.float64)" if rounded or always else literal(number)


#: Folds whose name in Triton is another.
_FOLDS = {"amax": "max", "amin": "min"}


def _lane(lane: tuple[int, int] | None) -> str:
    """The subscript that gives a one-dimensional index its place in a tile."""
    if lane is None:
        return ""
    place, rank = lane
    return f"[{', '.join(':' if d == place else 'None' for d in range(rank))}]"


def _dtype(dtype: torch.dtype) -> str:
    return _DTYPES.get(dtype, f"tl.{str(dtype).removeprefix('torch.')}")

"""The stages of the synthesizer as text for people; the data is that of ``kernel_lsp.synthesis.explain``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

_NARROWEST, _WIDEST = 80, 120  # columns; the widest for what is piped into a file


def print_stages(explained: dict[str, Any]) -> None:
    """Print the stages that there are, in their order."""
    console = Console(highlight=False, markup=False)
    console.width = min(max(console.width, _NARROWEST), _WIDEST) if console.is_terminal else _WIDEST
    for stage, show in (("graph", _graph), ("kernels", _kernels), ("schedule", _schedule), ("text", _text)):
        if explained[stage] is not None:
            console.print(Rule(Text(f"{stage} of {explained['class_name']}", "bold"), align="left"))
            show(console, explained[stage])
            console.print()


# -- graph ----------------------------------------------------------------------------------------------------------


def _graph(console: Console, graph: dict[str, Any]) -> None:
    values = _table("value", "operation", "shape", "dtype", "formula")
    for value in graph["values"]:
        operation = Text(value["text"])
        if value["view"] is not None:
            operation.append(f"\n{_map(value['view'])}", "dim")
        repeated = value["formula"] in (value["name"], value["text"])
        values.add_row(
            Text(value["name"], "bold" if value["name"] in graph["outputs"] else ""),
            operation,
            _brackets(value["shape"]),
            value["dtype"],
            Text("" if repeated else value["formula"]),
        )
    console.print(values)
    facts = _facts()
    facts.add_row("returns", Text(", ".join(graph["outputs"])))
    for size in graph["sizes"]:
        facts.add_row("size" if not size["named"] else "named size", Text(_size(size)))
    for condition in graph["conditions"]:
        facts.add_row("must hold", Text(condition))
    for call in graph["torch"]:
        facts.add_row("torch runs", Text(f"{call['operator']} ({', '.join(call['values'])}): {call['why']}"))
    console.print(facts)


def _map(view: dict[str, Any]) -> str:
    """``[dim0, dim1 - 1] where 0 <= dim1 - 1 < n, else 0.0``."""
    guard = f" where {' and '.join(view['guard'])}, else {view['pad']}" if view["guard"] else ""
    return f"at {_brackets(view['index'])}{guard}"


def _size(size: dict[str, Any]) -> str:
    parts = [f"{size['example']} in the example"] if size["example"] is not None else []
    if size["range"] is not None:
        least, most = size["range"]
        parts.append(f"{least} or more" if most is None else f"{least} to {most}")
    return f"{size['symbol']} = {size['is']}" + (f" ({', '.join(parts)})" if parts else "")


# -- kernels --------------------------------------------------------------------------------------------------------


def _kernels(console: Console, steps: list[dict[str, Any]]) -> None:
    for step in steps:
        stored, loaded = step["stores"], step["loads"]
        if step["kind"] == "kernel":
            console.print(f"step {step['step']}: kernel", style="bold")
            console.print(_kernel(step))
        else:
            what = step["operator"] if step["kind"] == "torch call" else step["view"]
            console.print(f"step {step['step']}: {step['kind']}", style="bold")
            console.print(Text(f"  {', '.join(stored)} = {what}({', '.join(loaded)})"))


def _kernel(step: dict[str, Any]) -> Table:
    facts = _facts()
    for store in step["stores"]:
        facts.add_row("stores", Text(f"{store['value']}{_brackets(store['index'])} = {store['formula']}"))
    if step["in_chunks"]:
        facts.add_row("", "each program takes one chunk of what is folded")
    domain = step["domain"]
    facts.add_row("kept", Text(_atoms(domain["kept"])))
    if domain["reduced"]:
        facts.add_row("folded", Text(_atoms(domain["reduced"])))
    for atom, parts in domain["split"].items():
        facts.add_row("split", Text(f"{atom} = {parts}"))
    for fold in step["folds"]:
        operand = f"{fold['operand']}{_brackets(fold['operand_index'])}"
        where = f"over dims {fold['dims']}" if fold["kind"] == "reduction" else f"along dim {fold['dims'][0]}"
        facts.add_row(
            fold["kind"], Text(f"{fold['value']}{_brackets(fold['index'])} = {fold['of']} of {operand} {where}")
        )
    if step["contraction"] is not None:
        _contraction(facts, step["contraction"])
    for load in step["loads"]:
        index = "" if load["index"] is None else f"{_brackets(load['index'])} of shape {_brackets(load['shape'])}"
        facts.add_row("loads", Text(f"{load['value']}{index}"))
    return facts


def _contraction(facts: Table, contraction: dict[str, Any]) -> None:
    sides = f"{contraction['left']} and {contraction['right']}"
    facts.add_row("product", Text(f"{contraction['value']} = {contraction['equation']} of {sides}"))
    for role in ("batch", "rows", "columns", "summed", "outer"):
        axes = [axis for axis in contraction["axes"] if axis["role"] == role]
        if axes:
            atoms = contraction["atoms"].get(role)
            over = f"; atoms {', '.join(atoms)}" if atoms else ""
            facts.add_row(role, Text(_sized((axis["axis"], axis["size"], axis["example"]) for axis in axes) + over))


def _atoms(atoms: list[dict[str, Any]]) -> str:
    return _sized((atom["atom"], atom["size"], atom["example"]) for atom in atoms) or "none: there is one result"


def _sized(items: Any) -> str:
    """``k0 = s77 (8), k1 = 4``: names with their sizes, and what those are for the example."""
    return ", ".join(f"{n} = {size}" + (f" ({example})" if str(example) != size else "") for n, size, example in items)


# -- schedule and text ----------------------------------------------------------------------------------------------


def _schedule(console: Console, schedule: dict[str, Any]) -> None:
    target = schedule["target"]
    note = f"; {target['note']}" if target["note"] else ""
    console.print(f"for {target['name']} ({target['architecture']}), the sizes of the example{note}")
    for kernel in schedule["kernels"]:
        costs = [one["cost"] for one in kernel["schedules"]]
        shown = [key for key in _COSTS if any(cost[key] for cost in costs)]
        table = _table(f"kernel of step {kernel['step']}", *(_COSTS[key][0] for key in shown))
        for column in table.columns[1:]:
            column.justify, column.no_wrap = "right", True
        for one in kernel["schedules"]:
            cells = (_COSTS[key][1](one["cost"][key]) for key in shown)
            name = Text(one["text"] + (" (chosen)" if one["chosen"] else ""))
            table.add_row(name, *cells, style="bold" if one["chosen"] else "")
        console.print(table)
    console.print("The time is an estimate that ranks the schedules of one kernel, not a prediction.", style="dim")


def _quantity(number: float, unit: str) -> str:
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.4g} {prefix}{unit}".rstrip()
        number /= 1000
    return f"{number:.4g} T{unit}"


#: what is shown of a cost, unless it is 0 for all schedules: the column's head, and how a figure is written
_COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "bytes": ("bytes", lambda n: _quantity(n, "B")),
    "operations": ("operations", lambda n: _quantity(n, "")),
    "programs": ("programs", str),
    "waves": ("waves", str),
    "shared": ("shared", lambda n: _quantity(n, "B")),
    "seconds": ("time", lambda n: f"{n * 1e6:.4g} µs"),
}


def _text(console: Console, text: dict[str, Any]) -> None:
    for kernel in text["kernels"]:
        several = "steps" if len(kernel["steps"]) > 1 else "step"
        console.print(f"{kernel['name']}, {several} {', '.join(map(str, kernel['steps']))}", style="bold")
        _code(console, kernel["source"])
    console.print(f"{text['host']['name']}, the host function", style="bold")
    _code(console, text["host"]["source"])


def _code(console: Console, source: str) -> None:
    """Lines that are too long are not broken where the text is piped into a file."""
    if console.is_terminal:
        console.print(Syntax(source.rstrip(), "python", word_wrap=True, background_color="default"), "")
    else:
        console.print(source.rstrip(), "", sep="\n", soft_wrap=True)


# -- tables ---------------------------------------------------------------------------------------------------------


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", collapse_padding=True)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _facts() -> Table:
    """Two columns: a word, and what there is to say of it."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True, min_width=12)
    facts.add_column(overflow="fold")
    return facts


def _brackets(items: list[str]) -> str:
    return f"[{', '.join(items)}]"

"""What kernels are called, and what they hand on to other steps."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.names import identifier, of_kernel, variable_name
from ..graph.value import Concat, Fold, Partial, Pointwise, Recur, Value, View, operands
from ..kernel.arguments import Arguments
from ..kernel.execution_plan import HostView, Kernel, Plan, Step
from ..kernel.reads import read

#: Words of the name of a product's kernel.
_MOST_WORDS = 5


def name_between(plan: Plan) -> set[Value]:
    """What a step reads that another one made; what a product's kernel makes of it gets a name, ``silu_add``, where it has none."""
    found = {value for step in plan.steps for value in read_by(step, plan.stored)}
    for step in plan.steps:
        if isinstance(step, Kernel) and step.contract is not None and len(step.results) == 1:
            (value,) = step.results
            if value in found and _anonymous(value):
                value.name = _short(_made_of(step.contract, value, plan.stored))
    return found


def name_outputs(kernel: Kernel, arguments: Arguments) -> None:
    """Give the kernel a pointer for each tensor that it fills."""
    for v in kernel.outputs:
        alone = len(kernel.outputs) == 1 and not kernel.partials
        arguments.outputs[v] = arguments.variable("out_ptr" if alone else f"{variable_name(v)}_ptr")


def _short(words: list[str]) -> str:
    return "_".join(words[-2:]) if len(words) > 1 else f"{words[0]}_out"


def _made_of(product: Value, last: Value, stored: set[Value]) -> list[str]:
    """``conv2d``, ``batch_norm``, ``silu``, ``add``: a product, the named operations after it up to ``last``, and whether something is added at the end.

    What is ``stored`` lies beside them.
    """
    leads: dict[Value, bool] = {product: True}

    def visit(v: Value) -> bool:
        """Whether ``v`` is computed from the product. Those that are are known in their order."""
        if v not in leads:
            alone = v is not last and (v in stored or not isinstance(v.op, Pointwise | View | Fold))
            leads[v] = False  # until its operands are known; none of them is computed from it
            leads[v] = not alone and any([visit(o) for o in operands(v)])
            if leads[v]:
                order.append(v)
        return leads[v]

    order: list[Value] = []
    visit(last)
    named = [v.meaning[0] for v in order if v.meaning and v is not last]
    words = list(dict.fromkeys([_product_of(product), *named]))
    if "linear" in words:  # which has a product
        words = [word for word in words if word != "matmul"]
    if isinstance(last.op, Pointwise) and last.op.function == "add":
        words.append("add")
    return words


def _anonymous(value: Value) -> bool:
    return isinstance(value.op, Pointwise) and not (value.name or value.module or value.meaning)


def _product_of(product: Value) -> str:
    return product.meaning[0] if product.meaning else "matmul"


def kernel_names(plan: Plan, name: str) -> dict[Kernel, str]:
    """What each kernel would be called, in ASCII; several may want one name."""
    return {kernel: of_kernel(text) for kernel, text in _kernel_names(plan, name).items()}


def _kernel_names(plan: Plan, name: str) -> dict[Kernel, str]:
    kernels = [s for s in plan.steps if isinstance(s, Kernel)]
    if len(kernels) == 1:
        return {kernels[0]: f"{name}_kernel"}
    result: dict[Kernel, str] = {}
    stepped = _given_to_steps(kernels)
    for kernel in kernels:
        value = kernel.stores[0][0] if kernel.whole is None or kernel.one_piece else kernel.whole
        while kernel.chain is not None and isinstance(value.op, View):
            value = value.op.operand
        if isinstance(value.op, Recur):
            result[kernel] = f"{value.op.loop.name or 'recurrence'}_kernel"
            continue
        what = value.meaning[0] if value.meaning and not value.module else variable_name(value)
        if _anonymous(value) and isinstance(value.op, Pointwise) and value.op.function == "add":
            what = "add"
        if kernel.partials and kernel.contract is None:
            op = max((v.op for v in kernel.partials if isinstance(v.op, Partial)), key=lambda op: bool(op.part))
            what = f"partial_{ {'amax': 'max', 'amin': 'min'}.get(op.kind, op.kind.partition('_')[0]) }"
        elif kernel.contract is not None and not value.module:
            product = _product_of(kernel.contract)
            words = _made_of(kernel.contract, value, plan.stored)
            if _anonymous(value) or value.name == _short(words):  # which another candidate gave it
                what = "_".join(words[:_MOST_WORDS])
            known = any(word in what for word in ("linear", "matmul", product))
            what = what if known else product if value is kernel.contract else f"{product}_{what}"
            what = "project_inputs" if value in stepped else what
        result[kernel] = identifier(f"{what}_exact_kernel" if kernel.exact else f"{what}_kernel")
    return result


def _given_to_steps(kernels: Sequence[Kernel]) -> set[Value]:
    """What recurrences are given a place of for each step, what that is a view of, and what it is put together of."""
    found: set[Value] = set()
    waiting = [v for k in kernels for value, _ in k.stores if isinstance(value.op, Recur) for v in value.op.loop.given]
    while waiting:
        value = waiting.pop()
        found.add(value)
        waiting += operands(value) if isinstance(value.op, View | Concat) else []
    return found


def read_by(step: Step, stored: set[Value]) -> Sequence[Value]:
    """The stored values that a step reads."""
    if isinstance(step, Kernel):
        return read(step, stored)
    return [o for v in ([step.value] if isinstance(step, HostView) else step.values) for o in operands(v)]

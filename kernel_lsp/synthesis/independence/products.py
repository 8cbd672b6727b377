"""Matrix products, convolutions' plainer relatives, einsum and attention."""

from __future__ import annotations

from typing import Any

from .carry import Call, Carry, Tracked, broadcast, require


def _product(left: Tracked, right: Tracked, rank: int, name: str) -> Carry:
    """Where ``left @ right`` of ``rank`` carries it: rows of the left, columns of the right, leading dimensions of both."""
    found = set()
    for operand, contracted in ((left, left.rank - 1), (right, max(right.rank - 2, 0))):
        if operand.carry is None:
            continue
        dim = operand.carry.dim
        require(dim != contracted, f"{name} sums over it")
        if operand is right and dim == right.rank - 1:
            place = rank - 1
        elif operand is left and dim == left.rank - 2:
            place = rank - (2 if right.rank > 1 else 1)
        else:  # leading dimensions are aligned from the right, in front of what a vector leaves of the last two
            matrix = (left.rank > 1) + (right.rank > 1)
            place = rank - matrix - (operand.rank - 2 - dim)
        found.add(operand.carry.at(place))
    require(len(found) == 1, f"{name}: its operands carry it along different dimensions")
    (carry,) = found
    for operand in (left, right):  # a leading dimension of another operand
        if operand.carry is None and carry.dim < rank - ((left.rank > 1) + (right.rank > 1)):
            matrix = (left.rank > 1) + (right.rank > 1)
            dim = operand.rank - 2 - (rank - matrix - carry.dim)
            require(dim < 0 or operand.shape[dim] == 1, f"{name}: an operand has a size of its own there")
    return carry


def matmul(call: Call) -> Carry:
    """Of any of its rows, columns or batches, for 1-D operands as torch has them.

    Raises:
        Dependent: along what is summed over.
    """
    operands = call.tensors()
    require(len(operands) == 2, f"{call.name}: operands of a kind not expected")
    return _product(operands[0], operands[1], len(call.shapes[0]), call.name)


def added_product(call: Call) -> Carry:
    """``beta * self + alpha * (a @ b)``."""
    bias, left, right = call.tensors()
    rank = len(call.shapes[0])
    if left.carry is None and right.carry is None:
        return broadcast([bias], rank, call.name)  # its result has the sizes of the product, which do not depend on it
    carry = _product(left, right, rank, call.name)
    return broadcast([Tracked(call.shapes[0], carry), bias], rank, call.name)


def scaled_product(call: Call) -> Carry:
    """``(a @ b) * scale_a * scale_b + bias``, scales of one number, of each row or of each column."""
    left, right, *others = call.tensors()
    rank = len(call.shapes[0])
    product: Carry | None = None
    if left.carry is not None or right.carry is not None:
        product = _product(left, right, rank, call.name)
    return broadcast([Tracked(call.shapes[0], product), *others], rank, call.name)


def linear(call: Call) -> Carry:
    """Along the dimensions of the input before the last; the weight is the same for every slice.

    Raises:
        Dependent: along the last one.
    """
    carry = call.only("input")
    require(carry.dim < call["input"].rank - 1, f"{call.name} sums over it")
    return carry


def einsum(call: Call) -> Carry:
    """The letter of the dimension has to be in the result, and in no operand twice."""
    equation = str(call["equation"]).replace(" ", "")
    require("->" in equation and "." not in equation, f"{call.name}: an equation of a kind not expected")
    terms, result = equation.split("->")
    operands = call.tensors()
    letters = {
        (term[t.carry.dim], t.carry.outer, t.carry.inner)
        for term, t in zip(terms.split(","), operands, strict=True)
        if t.carry
    }
    require(len(letters) == 1, f"{call.name}: its operands carry it along different dimensions")
    ((letter, outer, inner),) = letters
    for term, t in zip(terms.split(","), operands, strict=True):
        count = term.count(letter)
        require(count <= 1, f"{call.name} takes a diagonal of it")
        require(count == 0 or t.carry is not None, f"{call.name}: an operand has a size of its own there")
    require(letter in result, f"{call.name} sums over it")
    return Carry(result.index(letter), outer, inner)


def attention(call: Call) -> Carry:
    """Leading dimensions (batch, heads) of all; rows of the query, where no causal mask counts them."""
    query, key, value, mask = (call[name] for name in ("query", "key", "value", "attn_mask"))
    require(call["dropout_p"] == 0.0, f"{call.name} draws random numbers")
    rank = query.rank
    require(key.rank == value.rank == rank, f"{call.name}: operands of a kind not expected")
    require(query.carry is not None, f"{call.name}: its queries are the same for every slice")
    carry: Carry = query.carry
    require(carry.dim < rank - 1, f"{call.name} sums over it")
    if carry.dim == rank - 2:
        require(key.carry is None and value.carry is None, f"{call.name} sums over it")
        require(not call["is_causal"], f"{call.name}: its mask counts the rows")
    else:
        require(key.carry == value.carry == carry, f"{call.name}: not all operands carry it")
        require(not call.get("enable_gqa") or carry.dim < rank - 3, f"{call.name} shares heads")
    if mask is not None:
        broadcast([Tracked(query.shape, carry), mask], rank, call.name)
    return carry


RULES: dict[str, Any] = {
    **{f"aten.{name}": matmul for name in ["mm", "bmm", "matmul", "mv", "dot", "linalg_matmul"]},
    **{f"aten.{name}": added_product for name in ["addmm", "baddbmm", "addmv"]},
    "aten._scaled_mm": scaled_product,
    "aten.linear": linear,
    "aten.einsum": einsum,
    "aten.scaled_dot_product_attention": attention,
}

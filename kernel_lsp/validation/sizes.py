"""Which sizes the dynamic dimensions take, jointly: small enough for the interpreter, odd, prime, one, none."""

from __future__ import annotations

from collections.abc import Callable

from kernel_lsp.validation.inputs import Inputs

#: elements of the largest input that the interpreter is given, and of what is not the last dimension (about one
#: program instance each, at 4 ms)
INTERPRETED_ELEMENTS = 32768
INTERPRETED_ROWS = 12
INTERPRETED_WIDTH = 512

_PRIMES = (
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    23,
    31,
    43,
    61,
    89,
    127,
    181,
    257,
    367,
    521,
    739,
    1031,
    1453,
    2053,
    4099,
    8209,
    16411,
)


def small(inputs: Inputs) -> dict[str, int]:
    """Sizes at which the interpreter answers in a fraction of a second; no larger than the example's."""
    sizes = dict(inputs.example_sizes)
    last = _trailing(inputs)
    for symbol in sizes:
        if symbol in last:
            sizes[symbol] = min(sizes[symbol], INTERPRETED_WIDTH)
    while True:
        over = inputs.elements(sizes) > INTERPRETED_ELEMENTS or _rows(inputs, sizes) > INTERPRETED_ROWS
        leading = {s: n for s, n in sizes.items() if s not in last and n > fewest(inputs, s)}
        trailing = {s: n for s, n in sizes.items() if s in last and n > 64}
        if not over or not (leading or (trailing and inputs.elements(sizes) > INTERPRETED_ELEMENTS)):
            return sizes
        group = leading or trailing
        largest = max(group, key=lambda s: group[s])
        sizes[largest] = max(fewest(inputs, largest), sizes[largest] // 2)


def _trailing(inputs: Inputs) -> set[str]:
    """The symbols of last dimensions that are nowhere a leading one: what a program instance takes as a whole."""
    last = {leaf.symbols[-1] for leaf in inputs.leaves if leaf.symbols and leaf.symbols[-1]}
    leading = {symbol for leaf in inputs.leaves for symbol in leaf.symbols[:-1] if symbol}
    return {symbol for symbol in last - leading if symbol}


def _rows(inputs: Inputs, sizes: dict[str, int]) -> int:
    rows = 0
    for leaf in inputs.leaves:
        count = 1
        for symbol in leaf.symbols[:-1]:
            count *= sizes.get(symbol, 1) if symbol else 1
        rows = max(rows, count)
    return rows


def fewest(inputs: Inputs, symbol: str) -> int:
    """The least size that a dimension is cut to."""
    return max(2, inputs.ranges.get(symbol, [0, 0])[0])


def allowed(inputs: Inputs, symbol: str, size: int) -> int:
    """The size nearest to ``size`` in the range that the graph was exported for."""
    least, greatest = inputs.ranges.get(symbol, [0, 2**31])
    # torch.export says "at least 2" of every dimension, since it specialises on 0 and 1; eager decides on those.
    return max(least if least > 2 else 1, min(size, greatest))


def odd(inputs: Inputs, base: dict[str, int]) -> dict[str, int]:
    """Every dynamic dimension another prime, near ``base``."""
    taken: set[int] = set()
    sizes = {}
    for symbol, size in base.items():
        prime = next((p for p in _PRIMES if p >= size - 1 and p not in taken), size + 1)
        taken.add(prime)
        sizes[symbol] = allowed(inputs, symbol, prime)
    return sizes


def ones(inputs: Inputs, base: dict[str, int]) -> dict[str, int]:
    """Every dynamic dimension 1, where the module allows it."""
    return {symbol: allowed(inputs, symbol, 1) for symbol in base}


def one_each(inputs: Inputs, base: dict[str, int]) -> list[dict[str, int]]:
    """One dynamic dimension 1 at a time, the others as in ``base``."""
    if len(base) < 2:
        return []
    return [{**base, symbol: allowed(inputs, symbol, 1)} for symbol in base]


def empty(base: dict[str, int]) -> dict[str, int] | None:
    """The first dynamic dimension empty."""
    first = next(iter(base), None)
    return {**base, first: 0} if first else None


def wide(inputs: Inputs, base: dict[str, int]) -> dict[str, int] | None:
    """The last dimensions just past a power of two, the others at most 2: another block size, a masked tail."""
    last = _trailing(inputs)
    if not last:
        return None
    return {
        s: allowed(inputs, s, 1025 + i if s in last else min(n, fewest(inputs, s)))
        for i, (s, n) in enumerate(base.items())
    }


#: elements of a row that is as long as the example's, under the interpreter
_LONGEST_ROW = 1 << 18


def one_row(inputs: Inputs, base: dict[str, int]) -> dict[str, int] | None:
    """The last dimensions as long as the example's, the others as short as can be; None where ``base`` is so long."""
    last = {s for s in _trailing(inputs) if s in base and inputs.example_sizes[s] > base[s]}
    sizes = {s: inputs.example_sizes[s] if s in last else min(n, fewest(inputs, s)) for s, n in base.items()}
    return sizes if last and inputs.elements(sizes) <= _LONGEST_ROW else None


def all_rows(inputs: Inputs, base: dict[str, int]) -> dict[str, int] | None:
    """The leading dimensions as long as the example's, the last ones as short as can be; None where ``base`` has them all."""
    last = _trailing(inputs)
    longer = any(inputs.example_sizes[s] > n for s, n in base.items() if s not in last)
    sizes = {s: min(n, fewest(inputs, s)) if s in last else inputs.example_sizes[s] for s, n in base.items()}
    return sizes if longer and inputs.elements(sizes) <= _LONGEST_ROW else None


def fitting(inputs: Inputs, takes: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """``small`` where the module takes these sizes; else with as few dimensions as may be at the example's size.

    Which dimensions belong together (channels that a weight fixes after a concatenation, windows that have to fit)
    no graph says where it could not be exported for any size. Dimensions that cannot be cut are fixed in ``inputs``.
    """
    cut = small(inputs)
    if cut == inputs.example_sizes or takes(cut):
        return cut
    uncut = [s for s in cut if cut[s] != inputs.example_sizes[s]]
    for group in [*([s] for s in uncut), *([s for s in uncut if s != other] for other in uncut), uncut]:
        sizes = {s: inputs.example_sizes[s] if s in group else n for s, n in cut.items()}
        if group == uncut or takes(sizes):
            inputs.fix(set(group))
            return small(inputs)
    return cut

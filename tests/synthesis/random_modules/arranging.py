"""Views, slices, joins and pads."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tests.synthesis.random_modules.composition import Composition, Impossible

_SLICES = ("1:", ":-1", "-2:", "1:-1", ":3", "-3:-1", "2:100", "::2", "1::2", "::3", ":-1:2", "-3::2", "5:2", "0:1")


#: Parts that a tensor is taken apart into and put together of.
MOST_PARTS = 16


def _divisors(n: int) -> list[int]:
    return [f for f in range(1, n + 1) if n % f == 0]


def view(c: Composition) -> None:
    a = c.tensor()
    rank = len(c.shape(a))
    views = _OF_ANY_RANK + (_OF_DIMENSIONS * 4 if rank else ())
    c.add(c.one_of(*views)(c, a))


def _unsqueeze(c: Composition, a: str) -> str:
    rank = len(c.shape(a))
    return f"{a}.unsqueeze({c.random.randint(-rank - 1, rank)})"


def _expand(c: Composition, a: str) -> str:
    shape = c.shape(a)
    if 1 in shape and c.chance(0.5):
        return f"{a}.expand({[3 if n == 1 else -1 for n in shape]})"
    return f"{a}.expand({c.one_of(2, 3)}, *{a}.shape)"


def _repeat(c: Composition, a: str) -> str:
    return f"{a}.repeat({[c.one_of(1, 1, 2, 3) for _ in range(len(c.shape(a)) + c.one_of(0, 1))] or [2]})"


def _atleast(c: Composition, a: str) -> str:
    return f"torch.atleast_{c.one_of(2, 3)}d({a})"


def _like_another(c: Composition, a: str) -> str:
    b = c.tensor()
    return c.one_of(f"{a}.reshape_as({b})", f"{a}.expand_as({b})", f"torch.broadcast_to({a}, (2, *{a}.shape))")


def _permute(c: Composition, a: str) -> str:
    rank = len(c.shape(a))
    return f"{a}.permute({c.random.sample(range(rank), rank)})"


def _squeeze(c: Composition, a: str) -> str:
    return c.one_of(f"{a}.squeeze({c.dimension(a)})", f"{a}.squeeze()")


def _flatten(c: Composition, a: str) -> str:
    first, last = sorted((c.dimension(a), c.dimension(a)))
    return c.one_of(f"{a}.flatten({first}, {last})", f"{a}.reshape(-1)", f"{a}.reshape(-1)[:: {c.one_of(2, 3)}]")


def _unflatten(c: Composition, a: str) -> str:
    d = c.dimension(a)
    f = c.one_of(*_divisors(c.shape(a)[d]) or [1])
    return f"{a}.unflatten({d}, {c.one_of(f'({f}, -1)', f'(-1, {f})')})"


def _exchange(c: Composition, a: str) -> str:
    d, e = c.dimension(a), c.dimension(a)
    return c.one_of(f"{a}.transpose({d}, {e})", f"{a}.movedim({d}, {e})", f"{a}[None].mT", f"{a}.mT")


def _reshape(c: Composition, a: str) -> str:
    f = c.one_of(*_divisors(prod(c.shape(a))) or [1])
    return c.one_of(
        f"{a}.reshape({f}, -1)",
        f"{a}.reshape(-1, {f})",
        f"{a}.reshape({a}.shape[-1], -1)",
        f"{a}.reshape(-1, {a}.shape[0])",
        f"{a}.transpose(0, -1).reshape({a}.shape[0], -1)",
        f"{a}.transpose(0, -1).reshape(-1, {f})",
        f"{a}.reshape({a}.shape[::-1])",
    )


def _turned(c: Composition, a: str) -> str:
    d, e, rank = c.dimension(a), c.dimension(a), len(c.shape(a))
    return c.one_of(
        f"{a}.flip({c.random.randint(-rank, rank - 1)})",
        f"{a}.flip({list(range(rank))})",
        f"torch.roll({a}, {c.one_of(1, -1, 2, 5, -7)}, {d})",
        f"torch.roll({a}, 3)",
        f"torch.roll({a}, (1, -2), ({d}, {e}))",
        f"torch.roll({a}, {a}.shape[{d}] // 2, {d})",
        f"torch.rot90({a}, {c.one_of(1, 2, 3)}, [{d}, {e}])",
    )


def _repeated(c: Composition, a: str) -> str:
    d = c.dimension(a)
    sizes = tuple(c.one_of(1, 2) for _ in range(c.random.randint(1, len(c.shape(a)))))
    return c.one_of(f"{a}.tile({sizes})", f"{a}.repeat_interleave({c.one_of(2, 3)}, {d})")


def _windows(c: Composition, a: str) -> str:
    return f"{a}.unfold({c.dimension(a)}, {c.one_of(1, 2, 3)}, {c.one_of(1, 2, 3)})"


def _triangle(c: Composition, a: str) -> str:
    d, e = c.dimension(a), c.dimension(a)
    return c.one_of(
        f"torch.diagonal({a}, {c.one_of(0, 1, -1)}, {d}, {e})",
        f"torch.{c.one_of('tril', 'triu')}({a}, {c.one_of(0, 1, -1, 2)})",
        f"torch.meshgrid({a}.flatten()[:7], {a}.flatten()[:3], indexing='ij')[{c.one_of(0, 1)}]",
    )


def _shuffled(c: Composition, a: str) -> str:
    return c.one_of(
        f"F.pixel_shuffle({a}, 2)", f"F.pixel_unshuffle({a}, 2)", f"F.channel_shuffle({a}, {c.one_of(2, 3)})"
    )


_View = Callable[[Composition, str], str]
_OF_ANY_RANK: tuple[_View, ...] = (_unsqueeze, _expand, _repeat, _atleast, _like_another)
_OF_DIMENSIONS: tuple[_View, ...] = (
    *(_permute, _squeeze, _flatten, _unflatten, _exchange, _reshape),
    *(_turned, _turned, _repeated, _windows, _triangle, _shuffled),
)


def part(c: Composition) -> None:
    """Slices and numbers in brackets, or one of torch's functions for them."""
    a = c.tensor(least=1)
    d, size = c.dimension(a), f"{a}.shape"
    if c.chance(0.55):
        words = []
        for k in range(len(c.shape(a))):
            words += c.random.choices(
                [
                    [":"],
                    [c.one_of(*_SLICES, f":{size}[{k}] // 2", f"{size}[{k}] // 2:")],
                    [c.one_of("0", "-1", "1")],
                    ["None", ":"],
                    ["..."],
                ],
                [8, 8, 3, 1, 1 if "..." not in words else 0],
            )[0]
        c.add(f"{a}[{', '.join(words)}]")
        return
    n = c.one_of(1, 2, 3)
    c.add(
        c.one_of(
            f"{a}.narrow({d}, {c.one_of(0, 1)}, {n})",
            f"{a}.narrow({d}, 1, {size}[{d}] - 1)",
            f"{a}.select({d}, {c.one_of(0, -1, 1)})",
            f"torch.chunk({a}, {n}, {d})[{c.one_of(0, -1)}]",
            f"torch.split({a}, max({n}, {size}[{d}] // 8), {d})[{c.one_of(0, -1)}]",
            f"torch.unbind({a}, {d})[{c.one_of(0, -1)}]" if c.shape(a)[d] <= MOST_PARTS else f"{a}.flip({d})",
            f"torch.tensor_split({a}, {n}, {d})[{c.one_of(0, -1)}]",
        )
    )


def join(c: Composition) -> None:
    a, b = c.tensor(least=1), c.tensor(least=1)
    d = c.dimension(a, negative=True)
    c.add(
        c.one_of(
            f"torch.cat([{a}, {b}], {d})",
            f"torch.cat([{a}, {a} * 2, {b}], {d})",
            f"torch.stack([{a}, {b}], {d})",
            f"torch.stack([{a}, {a}, {a} + 1], {d})",
            f"torch.cat([{a}, {a}.flip({d})], {d})",
            f"torch.cat([{a}.narrow({d}, 0, 1), {a}], {d})",
            f"torch.cat([{a}, torch.zeros_like({a})], {d})",
            f"torch.cat([torch.tanh({a}.float()), {a}.float().cumsum({d})], {d})",
            f"torch.cat([{a}, {a}.sum({d}, keepdim=True)], {d})",
            f"torch.cat([{a}[..., :0], {a}], -1)",
            f"torch.hstack([{a}, {b}])",
            f"torch.stack(torch.unbind({a}, {d})[::-1], {d})" if c.shape(a)[d] <= MOST_PARTS else f"{a}[...]",
            f"torch.cat(torch.chunk({a}, 2, {d})[::-1], {d})",
        )
    )


def pad(c: Composition) -> None:
    mode = c.one_of("constant", "constant", "reflect", "replicate", "circular")
    if mode == "constant":
        a = c.tensor(least=1)
        amounts = [c.one_of(0, 0, 1, 2, -1, 3) for _ in range(2 * c.random.randint(1, len(c.shape(a))))]
        value = c.one_of("None", "1.5", "-1.0", "float('-inf')")
        c.add(f"F.pad({a}, {amounts}, value={value})")
        return
    a = c.float_tensor(2, 5)
    rank = len(c.shape(a))
    if rank < 2:
        raise Impossible
    padded = min(3, rank - 1 if c.chance(0.5) else max(rank - 2, 1))
    c.add(f"F.pad({a}, {[c.one_of(0, 1, 1, 2) for _ in range(2 * padded)]}, mode='{mode}')")


STEPS = {view: 5.0, part: 3.0, join: 2.0, pad: 1.5}

"""Reads and writes at places that are computed: of inputs of integers, of argmax and sort, of arange."""

from __future__ import annotations

from tests.synthesis.random_modules.composition import Composition


def _places(c: Composition, a: str, d: int) -> str:
    """Integers that are below a's size along d, some of them counted from the end."""
    i, n = c.tensor("integer"), f"{a}.shape[{d}]"
    return c.one_of(f"({i} % {n})", f"({i} % {n} - {n})", f"{i}.clamp(0, {n} - 1)", f"({i}.long() % {n})")


def _expanded(c: Composition, a: str, d: int) -> str:
    """Integers of a's shape that are no negative places along d."""
    return f"({c.tensor('integer')} % {a}.shape[{d}]).long().expand({a}.shape)"


def read(c: Composition) -> None:
    a = c.tensor(least=1)
    d, rank = c.dimension(a), len(c.shape(a))
    texts = [
        f"torch.take_along_dim({a}, {a}.argmax({d}, keepdim=True), {d})",
        f"torch.gather({a}, {d}, {a}.argsort({d}).flip({d}))",
        f"torch.gather({a}, {d}, {a}.topk(2, {d}).indices)",
        f"{a}[..., torch.arange({a}.shape[-1]) // 2]",
        f"torch.bucketize({c.float_tensor()}, torch.tensor([-1.0, 0.0, 0.5, 2.0]), right={c.one_of(True, False)})",
        f"torch.searchsorted(torch.tensor([0.0, 0.5, 1.0]), {c.float_tensor()})",
        f"torch.where({a} > 0, {a}, {a}.flip({d}))",
    ]
    if any(c.kind(name) == "integer" for name in c.tensors):
        i, flat = c.tensor("integer"), f"({c.tensor('integer')} % {a}.shape[{d}]).flatten()"
        texts += [
            f"{a}.index_select({d}, {flat})",
            f"torch.take({a}, ({i} % {a}.numel()).long())",
            f"torch.gather({a}, {d}, {_expanded(c, a, d)})",
            f"torch.gather({a}, {d}, ({i} % {a}.shape[{d}]).long())",
            f"{a}[{_places(c, a, 0)}]",
            f"{a}[{':, ' * d}{_places(c, a, d)}]",
            f"{a}[{_places(c, a, 0)}, {'..., ' + _places(c, a, -1) if rank > 1 else 'None'}]",
            f"F.one_hot({i}.long() % 5, 5)",
        ] * 2
        n = c.one_of(5, 8)
        if c.chance(0.15):
            texts = [f"{c.module(f'nn.Embedding({n}, {c.one_of(3, 4, 6)})')}({i} % {n})"]
        elif c.chance(0.08):
            i = c.tensor("integer", 2, 2)
            mode = c.one_of("sum", "mean", "max")
            texts = [f"{c.module(f'nn.EmbeddingBag({n}, 4, mode={mode!r})')}({i} % {n})"]
    c.add(c.one_of(*texts))


def written(c: Composition) -> None:
    a = c.tensor(least=1)
    d, rank = c.dimension(a), len(c.shape(a))
    three = [3 if k == d else -1 for k in range(rank)]
    texts = [
        f"{a}.index_add({d}, torch.tensor([0, 1, 0]), {a}.narrow({d}, 0, 1).expand({three}))",
        f"{a}.index_fill({d}, torch.tensor([{c.one_of('0', '0, -1', '1')}]), 3)",
        f"{a}.index_copy({d}, torch.tensor([1]), {a}.narrow({d}, 0, 1) * 2)",
        f"{a}.slice_scatter({a}.narrow({d}, 0, 1) * 2, {d}, 1, 2)",
        f"{a}.select_scatter({a}.select({d}, 0), {d}, 1)",
        f"{a}.diagonal_scatter(torch.zeros_like({a}.diagonal()))",
    ]
    if any(c.kind(name) == "integer" for name in c.tensors):
        reduced = c.one_of("amax", "mean", "prod", "amin", "sum")
        texts += [
            f"{a}.scatter({d}, {_expanded(c, a, d)}, {c.one_of('2', a)})",
            f"{a}.scatter_add({d}, {_expanded(c, a, d)}, {a})",
            f"{a}.scatter_reduce({d}, {_expanded(c, a, d)}, {a}, reduce='{reduced}')",
        ]
    c.add(c.one_of(*texts))


STEPS = {read: 1.8, written: 0.8}

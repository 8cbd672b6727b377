"""What is made of sizes and of nothing, changes in place, tensors that share memory, and numbers that forward computes."""

from __future__ import annotations

from tests.synthesis.random_modules.composition import Composition


def made(c: Composition) -> None:
    a, b = c.tensor(least=1), c.float_tensor()
    d = c.dimension(a)
    n = f"{a}.shape[{d}]"
    c.add(
        c.one_of(
            f"{a} + torch.arange({a}.shape[-1])",
            f"torch.arange({n}) * 0.5",
            f"torch.where(torch.arange({a}.shape[-1]) < 2, {a}, 0)",
            f"torch.linspace(0, 1, {a}.shape[-1]) * {a}",
            f"torch.ones_like({a}).cumsum({d}) * {a}",
            f"torch.eye({a}.shape[-1])",
            f"{a} * {n}",
            f"{a} / {a}.numel()",
            f"torch.full(({n}, 3), 2.5)",
            f"{a}.new_zeros({n}, 2)",
            f"torch.triu(torch.ones({a}.shape[-1], {a}.shape[-1]), 1)",
            f"torch.diag_embed({a})",
            f"torch.kron({a}, torch.ones(2, dtype={a}.dtype))",
            f"torch.cross({a}, {a}.flip(0), dim={d})",
            f"torch.clamp({a}, {a}.float().mean(), {a}.float().amax())",
            f"({a} - {a}.amin({d}, True)) / ({a}.amax({d}, True) - {a}.amin({d}, True) + 1)",
            f"torch.histc({b}, 4, -2, 2)",
            f"torch.fft.fft({b}).real",
            f"torch.complex({b}, {b}).abs()",
            f"{a}.sum() + {a}",
        )
    )


def changed_copy(c: Composition) -> None:
    """A copy that is changed as a whole, in one statement."""
    a = c.tensor(least=1)
    d = c.dimension(a)
    c.add(
        c.one_of(
            f"{a}.clone().index_put(({a} > 0,), torch.tensor(2, dtype={a}.dtype))",
            f"{a}.clone().fill_(3)",
            f"{a}.clone().mul_(2).add_(1)",
            f"torch.zeros_like({a}).copy_({a}.flip({d}))",
            f"{a}.clone().masked_fill_({a} > 0, 1)",
            f"{a}.clone().clamp_(-1, 1)",
            f"{a}.clone().transpose_(0, {d})",
            f"torch.empty_like({a}).fill_(1) + {a}",
            f"{a}.clone().index_fill_({d}, torch.tensor([0]), 5)",
            f"{a}.clone().scatter_({d}, torch.zeros_like({a}, dtype=torch.int64), 1)",
        )
    )


def change(c: Composition) -> None:
    """A value computed before that is changed in place, or a view of it; other names of its memory see it."""
    made_before = [name for name in c.tensors if name not in c.inputs and c.values[name].dim()]
    if not made_before or c.chance(0.4):
        a = c.tensor(least=1)
        name = c.add(c.one_of(f"{a}.clone()", f"{a} * 2", f"torch.zeros_like({a})", f"{a}.contiguous()"))
        d = c.dimension(name)
        if c.chance(0.5):
            c.add(
                c.one_of(f"{name}.select({d}, 0)", f"{name}[..., ::2]", f"{name}.transpose(0, -1)", f"{name}.view(-1)")
            )
        made_before = [name]
    a = c.random.choice(made_before)
    if not c.shape(a) or not _own_memory(c, a):
        return
    b, d = c.tensor(), c.dimension(a)
    c.change(
        c.one_of(
            f"{a}.add_(1)",
            f"{a}.mul_({b})",
            f"{a} += {b}",
            f"{a} *= 2",
            f"{a}[0] = 1",
            f"{a}[..., 1:] = {a}[..., :-1].clone()",
            f"{a}[..., ::2] = {b}",
            f"{a}.select({d}, 0).zero_()",
            f"{a}[:, 0] += 1",
            f"{a}[{a} > 0] = 2",
            f"{a}[{a} < 0] *= -1",
            f"{a}.narrow({d}, 0, 1).copy_({b})",
            f"{a}.t_()",
            f"{a}.relu_()",
            f"{a}.clamp_(-1, 1)",
            f"{a}.masked_fill_({a} > 1, 0)",
            f"{a}.fill_diagonal_(3)",
            f"{a}.copy_({b})",
            f"{a}.transpose(0, -1).add_(1)",
            f"{a}.flatten().mul_(2)",
        )
    )


def _own_memory(c: Composition, a: str) -> bool:
    """Whether a change of ``a`` leaves the inputs and the parameters alone."""
    given = [c.values[name] for name in c.inputs] + list(c.values["self"].parameters())
    return all(c.values[a].untyped_storage().data_ptr() != t.untyped_storage().data_ptr() for t in given)


def number(c: Composition) -> None:
    """A number of sizes, and what is made of it."""
    a = c.tensor(least=1)
    d = c.dimension(a)
    n = c.add_number(
        c.one_of(
            f"{a}.shape[{d}] // 2",
            f"-{a}.shape[{d}] // 3",
            f"-{a}.shape[{d}] % 3",
            f"{a}.numel()",
            f"{a}.size({d}) ** 0.5",
            f"max({a}.shape[{d}], 3)",
            f"{a}.dim() + {a}.shape[{d}] / 2",
        )
    )
    c.add(c.one_of(f"{a} * {n}", f"{a} - {n}", f"torch.where({a} > 0, {a}, {n})", f"torch.where({a} > 0, {n}, 0)"))


STEPS = {made: 2.0, changed_copy: 0.8, change: 1.5, number: 0.7}

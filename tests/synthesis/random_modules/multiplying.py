"""Products of matrices, convolutions, pools, and interpolation."""

from __future__ import annotations

from tests.synthesis.random_modules.composition import Composition, Impossible


def product(c: Composition) -> None:
    a, b = c.float_tensor(1), c.float_tensor(1)
    n = c.shape(a)[-1]
    if c.chance(0.35):
        columns = c.one_of(1, 3, 5, 8, 17)
        c.add(f"{c.module(f'nn.Linear({n}, {columns}, bias={c.chance(0.7)})')}({a})")
        return
    if c.chance(0.1):
        attention = c.module(f"nn.MultiheadAttention({n}, 1, batch_first=True)")
        c.add(f"{attention}({a}, {a}, {a})[{c.one_of(0, 1)}]")
        return
    if c.chance(0.05):
        c.add(f"{c.module(f'nn.Bilinear({n}, {n}, 3)')}({a}, {a})")
        return
    m = c.float_tensor(2)
    c.add(
        c.one_of(
            f"F.linear({a}, {m})",
            f"{a} @ {a}.transpose(-1, -2)",
            f"{a} @ {b}",
            f"torch.matmul({a}, {m}.mT)",
            f"torch.outer({a}.flatten()[:9], {b}.flatten()[:7])",
            f"torch.mv({m}, {b})",
            f"torch.addmm({b}, {m}, {m}.mT)",
            f"torch.tensordot({m}, {m}, dims=([1], [1]))",
            f"torch.cdist({m}, {m}, p={c.one_of('1.0', '2.0')})",
            f"F.scaled_dot_product_attention({a}, {m}, {m}{c.one_of('', ', is_causal=True')})",
            f"torch.einsum('...ij,...kj->...ik', {m}, {m})",
            f"torch.einsum('b...,b...->b', {a}, {a})",
            _einsum(c, a, b),
            _einsum(c, b, a),
        )
    )


def _einsum(c: Composition, a: str, b: str) -> str:
    first = "abcdef"[: len(c.shape(a))]
    letters = list(first + "xyzuvw")
    second = "".join(c.random.sample(letters, len(c.shape(b))))
    known = sorted({*first, *second})
    result = "".join(c.random.sample(known, c.random.randint(0, min(4, len(known)))))
    return f"torch.einsum('{first},{second}->{result}', {a}, {b})"


def convolution(c: Composition) -> None:
    n = c.one_of(1, 1, 2, 2, 2, 3)
    a = c.float_tensor(n + 1, n + 2)
    channels = c.shape(a)[-n - 1]
    groups = c.one_of(1, *(g for g in range(1, channels + 1) if channels % g == 0))
    kernel = c.one_of(1, 2, 3, 3) if n == 1 or c.chance(0.6) else tuple(c.one_of(1, 2, 3) for _ in range(n))
    stride = c.one_of(1, 1, 2, 3) if n == 1 or c.chance(0.7) else tuple(c.one_of(1, 2) for _ in range(n))
    padding = c.one_of(0, 1, 1, 2)
    common = (
        f"{channels}, {groups * c.one_of(1, 2, 3)}, {kernel}, stride={stride}, groups={groups}, bias={c.chance(0.6)}"
    )
    common += f", dilation={c.one_of(1, 1, 1, 2)}"
    if c.chance(0.35):
        text = f"nn.ConvTranspose{n}d({common}, padding={padding}, output_padding={c.one_of(0, 0, 1)})"
    else:
        mode = c.one_of("zeros", "zeros", "zeros", "zeros", "reflect", "circular", "replicate")
        amount = "'same'" if stride == 1 and c.chance(0.1) else padding
        text = f"nn.Conv{n}d({common}, padding={amount}, padding_mode='{mode}')"
    c.add(f"{c.module(text)}({a})")


def pool(c: Composition) -> None:
    n = c.one_of(1, 2, 2, 3)
    a = c.float_tensor(n + 1, n + 2)
    kernel, padding = c.one_of(2, 3, 3), c.one_of(0, 1)
    if n > 1 and c.chance(0.25):
        kernel, padding = tuple(c.one_of(1, 2, 3) for _ in range(n)), 0
    stride = c.one_of(1, 2, 3)
    window = f"{a}, {kernel}, {stride}, padding={padding}, ceil_mode={c.one_of(True, False)}"
    divisor = f", divisor_override={c.one_of(2, 5)}" if n > 1 and c.chance(0.2) else ""
    texts = [
        f"F.avg_pool{n}d({window}, count_include_pad={c.one_of(True, False)}{divisor})",
        f"F.max_pool{n}d({window}, dilation={c.one_of(1, 1, 2)})",
        f"F.max_pool{n}d({window}, return_indices=True)[1]",
        f"F.adaptive_avg_pool{n}d({a}, {c.one_of(1, 2, 3, 5)})",
        f"F.adaptive_max_pool{n}d({a}, {c.one_of(1, 2, 3)})",
    ]
    if n < 3:
        texts += [f"F.lp_pool{n}d({a}.abs(), {c.one_of(1, 2, 3)}.0, {kernel}, {stride})"]
    if n == 2:
        places = f"padding={c.one_of(0, 1)}, stride={stride}"
        texts += [
            f"F.unfold({a}, {c.one_of(1, 2, 3)}, dilation={c.one_of(1, 2)}, {places})",
            f"F.fold(F.unfold({a}, 2, {places}), {a}.shape[-2:], 2, {places})",
        ]
    c.add(c.one_of(*texts))


def interpolation(c: Composition) -> None:
    n = c.one_of(1, 2, 2, 3)
    a = c.float_tensor(n + 2, n + 2)
    if n == 2 and c.chance(0.15):
        how = f"mode='{c.one_of('bilinear', 'nearest')}', padding_mode='{c.one_of('zeros', 'border')}'"
        theta = f"torch.tensor([[[1.0, 0.1, 0.0], [0.0, 0.9, 0.2]]]).expand({a}.shape[0], -1, -1)"
        c.add(f"F.grid_sample({a}, F.affine_grid({theta}, [2, 3, 4, 5]), {how}, align_corners={c.one_of(True, False)})")
        return
    modes = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[n]
    mode = c.one_of("nearest", "nearest-exact", "area", *modes)
    corners = f", align_corners={c.one_of(True, False)}" if mode in modes else ""
    size = c.one_of(
        f"scale_factor={c.one_of(2, 0.5, 1.5, 3, 0.7)}",
        f"size={c.one_of(3, 5, 8)}",
        f"scale_factor={c.one_of(2.0, 1.3)}, recompute_scale_factor=True",
    )
    c.add(f"F.interpolate({a}, {size}, mode='{mode}'{corners})")


def loss(c: Composition) -> None:
    a, b = c.float_tensor(2), c.float_tensor()
    if len(c.shape(a)) < 2:
        raise Impossible
    c.add(
        c.one_of(
            f"F.cross_entropy({a}, torch.zeros_like({a}[:, 0], dtype=torch.long), reduction='none')",
            f"F.huber_loss({b}, torch.zeros_like({b}))",
            f"F.binary_cross_entropy_with_logits({b}, torch.sigmoid({b}), reduction='{c.one_of('mean', 'none')}')",
            f"F.kl_div({b}, torch.softmax({b}, -1), reduction='sum')",
            f"F.pairwise_distance({a}, {a}.flip(0))",
            f"F.prelu({a}, torch.tensor([0.2]))",
            f"torch.std_mean({a}, -1)[{c.one_of(0, 1)}]",
            f"torch.var_mean({a}, 0)[{c.one_of(0, 1)}]",
        )
    )


STEPS = {product: 2.0, convolution: 1.5, pool: 1.2, interpolation: 0.8, loss: 0.6}

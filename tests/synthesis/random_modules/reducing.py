"""Reductions, scans along a dimension, softmaxes and norms."""

from __future__ import annotations

from tests.synthesis.random_modules.composition import Composition

_OVER_ONE = ("prod", "any", "all", "argmax", "argmin", "nansum", "norm")
_OVER_SEVERAL = ("sum", "mean", "amax", "amin", "logsumexp", "nansum", "nanmean", "any", "all")
_OF_FLOATS = ("mean", "var", "std", "logsumexp", "norm", "nanmean", "vector_norm")
_REDUCTIONS = tuple(
    {*_OVER_ONE, *_OVER_SEVERAL, "var", "std", "vector_norm", "max", "min", "median", "count_nonzero", "aminmax"}
)
_ORDERS = ("1", "2", "3", "0", "0.5", "float('inf')", "-float('inf')")

_SCANS_OF_FLOATS = (
    "torch.softmax({a}, {d})",
    "torch.log_softmax({a}, {d})",
    "F.softmin({a}, {d})",
    "torch.softmax({a}, {d}, dtype=torch.float64)",
    "torch.softmax({a}.masked_fill({a} < 0, float('-inf')), {d})",
    "torch.cumsum({a}, {d})",
    "torch.cumsum({a}.flip({d}), {d}).flip({d})",
    "torch.cumsum({a}, {d})[..., 1:] - {a}[..., 1:]",
    "torch.cumprod(torch.tanh({a}) + 0.5, {d})",
    "torch.cummax({a}, {d}).values",
    "torch.cummax({a}, {d}).indices",
    "torch.cummin({a}, {d}).values",
    "torch.cummin({a}, {d}).indices",
    "torch.logcumsumexp({a}, {d})",
    "F.normalize({a}, dim={d})",
    "F.normalize({a}, p=1.0, dim={d})",
    "torch.renorm({a}, 2, {d}, 1.0)",
    "torch.diff({a}, dim={d})",
    "torch.diff({a}, n=2, dim={d})",
    "torch.gradient({a}, dim={d})[0]",
    "torch.trapezoid({a}, dim={d})",
    "torch.sort({a}, {d}).values",
    "torch.argsort({a}, {d})",
    "torch.topk({a}, 2, {d}).values",
    "torch.topk({a}, 1, {d}, largest=False).indices",
    "torch.kthvalue({a}, 2, {d}).values",
    "F.glu({a}, {d})",
)
_SCANS_OF_INTEGERS = (
    "torch.cumsum({a}, {d})",
    "torch.cumsum({a}, {d}) - 1",
    "torch.cumsum({a}, {d}, dtype=torch.float32)",
    "torch.cumprod({a}, {d})",
    "torch.cummax({a}.long(), {d}).values",
    "torch.cummin({a}.long(), {d}).indices",
    "torch.sort({a}, {d}, stable=True).indices",
    "torch.argmax({a}.long(), {d})",
    "torch.diff({a}, dim={d})",
)


def reduction(c: Composition) -> None:
    f = c.one_of(*sorted(_REDUCTIONS))
    a = c.tensor()
    if f in _OF_FLOATS and c.kind(a) != "float":
        a = f"{a}.float()"
    rank = len(c.shape(a))
    if not rank or c.chance(0.08):
        a = f"{a}.contiguous()" if f == "median" else a
        c.add(f"torch.{f}({a})" if f not in ("vector_norm", "aminmax") else f"{a}.amax()")
        return
    d, keep = c.dimension(a, negative=True), c.chance(0.4)
    several = sorted(c.random.sample(range(rank), c.random.randint(1, rank)))
    if c.chance(0.3):
        several = [k - rank for k in several]
    if f == "prod" and c.kind(a) == "float":
        a = f"torch.tanh({a})"
    if f in _OVER_SEVERAL:
        text = f"torch.{f}({a}, dim={several}, keepdim={keep})"
    elif f in ("var", "std"):
        text = f"torch.{f}({a}, dim={several}, correction={c.one_of(0, 1, 1)}, keepdim={keep})"
    elif f == "vector_norm":
        text = f"torch.linalg.vector_norm({a}, ord={c.one_of(*_ORDERS)}, dim={several}, keepdim={keep})"
    elif f in ("max", "min"):
        text = f"torch.{f}({a}, dim={d}, keepdim={keep}){c.one_of('.values', '.indices', '[0]')}"
    elif f == "median":
        # torch.median reads memory of others where a stride is zero.
        text = f"torch.median({a}.contiguous(), dim={d}, keepdim={keep}).values"
    elif f == "count_nonzero":
        text = f"torch.count_nonzero({a}, dim={d})"
    elif f == "aminmax":
        text = f"torch.aminmax({a}, dim={d}, keepdim={keep}).{c.one_of('min', 'max')}"
    else:
        text = f"torch.{f}({a}, dim={d}, keepdim={keep})"
    if f in ("sum", "prod") and c.chance(0.1):
        text = f"{text[:-1]}, dtype=torch.float64)"
    c.add(text)


def scan(c: Composition) -> None:
    a = c.tensor(least=1)
    texts = _SCANS_OF_FLOATS if c.kind(a) == "float" else _SCANS_OF_INTEGERS
    c.add(c.one_of(*texts).format(a=a, d=c.dimension(a, negative=True)))


def norm(c: Composition) -> None:
    a = c.float_tensor(least=1)
    shape = c.shape(a)
    rank = len(shape)
    texts = [
        f"F.layer_norm({a}, {a}.shape[-{c.random.randint(1, rank)}:]{c.one_of('', ', eps=1e-3')})",
        f"F.rms_norm({a}, {a}.shape[-1:])",
        f"{a} / ({a}.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()",
        f"F.batch_norm({a}, None, None, training=True)",
    ]
    modules = [f"nn.LayerNorm({shape[-1]})", f"nn.LayerNorm({shape[-1]}, bias=False)", f"nn.RMSNorm({shape[-1]})"]
    if rank >= 3:
        groups = c.one_of(*(g for g in range(1, shape[1] + 1) if shape[1] % g == 0))
        texts += [
            f"F.group_norm({a}, {groups})",
            f"F.instance_norm({a})",
            f"F.local_response_norm({a}, {c.one_of(2, 3)})",
        ]
        modules += [f"nn.GroupNorm({groups}, {shape[1]})"]
    if 3 <= rank <= 5:
        options = c.one_of("", ", momentum=None", ", affine=False", ", track_running_stats=False", ", momentum=0.3")
        modules += [f"nn.BatchNorm{rank - 2}d({shape[1]}{options})"] * (3 if c.training else 1)
        modules += [f"nn.InstanceNorm{rank - 2}d({shape[1]}, affine=True)"]
    if rank == 2:
        modules += [f"nn.BatchNorm1d({shape[1]})"]
    c.add(f"{c.module(c.one_of(*modules))}({a})" if c.chance(0.5) else c.one_of(*texts))


STEPS = {reduction: 3.0, scan: 2.0, norm: 1.5}

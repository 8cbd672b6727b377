"""Elementwise operators of one, two and three operands, of floats, integers and flags; conversions of dtypes."""

from __future__ import annotations

from tests.synthesis.random_modules.composition import Composition


def _texts(table: str) -> list[str]:
    return [text.strip() for text in table.split(";")]


#: {a} and {b}: the operands; {m}: flags.
_FLOATS = _texts("""
    torch.tanh({a}); torch.exp({a}.clamp(-3, 2)); torch.sqrt({a}.abs() + 0.1); torch.log1p({a}.abs());
    torch.sin({a}); torch.cos({a}); torch.erf({a}); torch.floor({a}); torch.ceil({a}); torch.round({a});
    torch.trunc({a}); torch.sign({a}); torch.frac({a}); -{a}; {a}.abs(); torch.reciprocal({a}.abs() + 0.5);
    torch.rsqrt({a}.abs() + 0.2); torch.sigmoid({a}); F.relu({a}); F.gelu({a}); F.gelu({a}, approximate="tanh");
    F.silu({a}); F.mish({a}); F.softplus({a}); F.softplus({a}, beta=2.0, threshold=1.0); F.elu({a}, 0.7);
    F.celu({a}, 1.3); F.selu({a}); F.hardswish({a}); F.hardsigmoid({a}); F.hardtanh({a}, -0.5, 0.7); F.relu6({a});
    F.leaky_relu({a}, 0.1); F.softsign({a}); F.tanhshrink({a}); F.hardshrink({a}, 0.4); F.softshrink({a}, 0.3);
    F.threshold({a}, 0.1, -2.0); F.logsigmoid({a}); torch.nan_to_num({a}); torch.nan_to_num({a}, 1.0, 2.0, -3.0);
    {a}.clamp(min=-0.3); {a}.clamp(max=0.4); {a}.clamp(-0.2, 0.6); {a} ** 2; {a} ** 3; {a}.abs() ** 0.5;
    ({a}.abs() + 0.3) ** -1; {a}.abs() ** 1.7; {a} ** 4; 2.0 ** {a}.clamp(-5, 5); torch.exp2({a}.clamp(-5, 5));
    torch.expm1({a}.clamp(-5, 5)); torch.log2({a}.abs() + 0.1); torch.log10({a}.abs() + 0.1); torch.square({a});
    torch.sgn({a}); torch.atan({a}); torch.asinh({a}); torch.acos({a}.clamp(-1, 1)); torch.logit({a}, eps=0.1);
    torch.special.expit({a}); torch.erfc({a}); torch.erfinv(torch.tanh({a}) * 0.9); torch.deg2rad({a});
    torch.heaviside({a}, torch.tensor(0.5)); torch.where({a} > 0, {a}, 0.3); torch.where({a} > 0.2, 1.0, {a});
    1 - {a}; 2 / ({a}.abs() + 1); {a} * 0.5 + 1; {a} / 3; {a} // 0.7; {a} % 0.7; {a} % -0.7; torch.fmod({a}, 0.7);
    torch.remainder({a}, 1.1); {a}.masked_fill({a} < 0, -1.0); {a} * ({a} > 0); torch.round({a}, decimals=1);
    torch.special.xlog1py({a}, {a}.abs()); torch.xlogy({a}, {a}.abs() + 0.1); torch.sinc({a});
    torch.special.i0e({a}); torch.lgamma({a}.abs() + 0.5); torch.digamma({a}.abs() + 0.5);
    torch.rsub({a}, 2.0, alpha=0.5); torch.clamp_min({a}, 0.1); torch.positive({a});
    torch.log_softmax({a}.flatten(), 0).sum() + {a}; torch.special.entr({a});
    torch.copysign({a}, torch.tensor(-1.0)); torch.sinh({a}.clamp(-3,3)); torch.special.log_ndtr({a});
    torch.special.ndtr({a}); {a}.detach().clone(); {a}.contiguous(); torch.where({a} > 0, 1, 0);
    torch.where({a} > 0, True, 2.5); torch.where({a} > 0, 2, {a}); torch.where({a} < {a}.mean(), 1.5, -1);
    {a} // -0.6; torch.fmod({a}, -0.9); {a}.clamp(0.5, -0.5); torch.isnan({a}) | torch.isinf({a}); {a}.bool();
    {a} ** 0.0; {a} ** -2; torch.pow(0.5, {a}.clamp(-4, 4)); {a}.sum() * 0 + {a};
    F.dropout({a}, 0.0, training=True); F.dropout({a}, 1.0, training=True);
    F.dropout({a}, 0.5, training=self.training and False); {a}.to(torch.float16).to({a}.dtype); torch.signbit({a});
    -({a} == 0).float() + {a}
""")
_INTEGERS = _texts("""
    {a}.abs(); -{a}; ~{a}; {a} // 3; {a} % 3; {a} % -3; torch.fmod({a}, 3); torch.fmod({a}, -3); {a} // -2;
    {a} << 1; {a} >> 1; {a} & 3; {a} ;  4; {a} ^ 5; {a}.clamp(-1, 2); torch.sign({a}); {a} * {a}; {a}.float();
    {a} / 3; {a} + 0.5; {a} ** 2; {a} ** 3; {a}.bool(); {a} == 1; {a}.to(torch.int32); {a}.to(torch.int8);
    {a}.to(torch.uint8); {a}.long(); torch.div({a}, 3, rounding_mode="trunc");
    torch.div({a}, -3, rounding_mode="floor"); torch.where({a} > 0, {a}, 7); {a}.to(torch.float16); torch.sin({a});
    {a}.masked_fill({a} < 1, 9); F.one_hot({a} % 4, 4); torch.sigmoid({a}); torch.rsub({a}, 3); 1 - {a};
    {a}.double(); torch.isin({a}, torch.tensor([1, 3])); {a} // -3; {a} % -2; torch.remainder({a}, -5);
    torch.div({a}, -2, rounding_mode='trunc'); torch.where({a} > 1, {a}, -1); torch.where({a} > 1, 1, 0);
    {a} // 1.5; {a} % 2.5; {a} >> 2; {a}.to(torch.int16) * 300; {a}.to(torch.uint8) + 200; {a}.to(torch.int8) // -2;
    torch.bitwise_left_shift({a}, 2); {a}.clamp(3, 1); ~{a} % 3; {a} * 1.5; {a} * True; -{a} // 2;
    ({a} - 3).float() % 2; torch.sqrt({a}.abs()); {a}.abs() ** 0.5; 2 ** {a}.clamp(0, 6);
    torch.pow(3, {a}.clamp(0, 4))
""")
_FLAGS = _texts("""
    ~{a}; torch.logical_not({a}); {a}.float(); {a}.long(); {a} * 2; {a}.to(torch.int32);
    torch.where({a}, 1.0, -2.0); torch.where({a}, 3, 4); {a} & True; {a} ^ True; {a} + 1.5; {a} == 0;
    {a}.to(torch.float64); {a}.to(torch.bfloat16); {a} + {a}; {a} / 2; torch.where({a}, 1, 2.5);
    torch.where({a}, True, False); torch.where({a}, float('inf'), 0); {a} * {a}; {a} | False; {a} > 0.5;
    {a}.to(torch.int8) - 1; {a}.to(torch.uint8) - 1; {a}.sum() + {a}; {a} < True; 1 - {a}.float();
    {a}.float().mean() * {a}
""")
_PAIRS = _texts("""
    {a} + {b}; {a} - {b}; {a} * {b}; torch.add({a}, {b}, alpha=2); torch.sub({a}, {b}, alpha=3);
    torch.maximum({a}, {b}); torch.minimum({a}, {b}); {a} > {b}; {a} <= {b}; {a} == {b}; {a} != {b};
    torch.where({a} > {b}, {a}, {b}); torch.logical_and({a}, {b}); torch.logical_xor({a}, {b}); {a} * 2 + {b};
    torch.eq({a}, {b}).float(); torch.where({a} != {b}, 1, 0); torch.ge({a}, {b}) & ({a} != 0)
""")
_FLOAT_PAIRS = _texts("""
    {a} / ({b}.abs() + 0.5); torch.fmax({a}, {b}); torch.fmin({a}, {b}); torch.atan2({a}, {b});
    torch.hypot({a}, {b}); torch.copysign({a}, {b}); ({a}.abs() + 0.1) ** {b}.clamp(-2, 2);
    torch.lerp({a}, {b}, 0.3); torch.floor_divide({a}, {b}.abs() + 0.5); torch.remainder({a}, {b}.abs() + 0.5);
    torch.remainder({a}, -{b}.abs() - 0.5); torch.fmod({a}, {b}.abs() + 0.5);
    torch.div({a}, {b}.abs() + 0.3, rounding_mode="trunc"); torch.logaddexp({a}, {b});
    torch.addcmul({a}, {b}, {b}, value=0.5); torch.addcdiv({a}, {b}, {b}.abs() + 1, value=0.5);
    {a}.clamp(-{b}.abs(), {b}.abs()); F.mse_loss({a}.expand_as({a} + {b}), {b}.expand_as({a} + {b}));
    F.smooth_l1_loss({a}.expand_as({a} + {b}), {b}.expand_as({a} + {b}), reduction="none"); torch.isclose({a}, {b});
    torch.cosine_similarity({a}, {b}, dim=-1); torch.ldexp({a}, {b}.clamp(-2,2)); torch.nextafter({a}, {b});
    {a} // ({b} + 0.1); torch.where({a} > {b}, {a}, 0) / ({b}.abs() + 1); torch.max({a}, {b}) - torch.min({a}, {b});
    torch.nn.functional.l1_loss({a}.expand_as({a} + {b}), {b}.expand_as({a} + {b}), reduction='sum')
""")
_INTEGER_PAIRS = _texts("""
    {a} // ({b}.abs() + 1); {a} % ({b}.abs() + 1); torch.fmod({a}, {b}.abs() + 2); {a} & {b}; {a} ;  {b}; {a} ^ {b};
    {a} << ({b} & 3); {a} >> ({b} & 3); torch.div({a}, {b} * 2 + 1, rounding_mode="trunc");
    torch.div({a}, {b} * 2 + 1, rounding_mode="floor"); {a} / ({b}.abs() + 1); torch.gcd({a}, {b});
    {a}.clamp(max={b}); {a} // -({b}.abs() + 1); {a} % -({b}.abs() + 2); torch.remainder({a}, {b} * 2 + 1);
    torch.fmod({a}, {b} * 2 - 1); {a}.to(torch.int8) // ({b}.to(torch.int8) | 1); torch.lcm({a}, {b});
    torch.where({a} > {b}, {a}, 0)
""")
_FLAG_PAIRS = _texts(
    "{a} & {b}; {a} ;  {b}; {a} ^ {b}; torch.where({a}, {b}, ~{b}); {a} + {b}; {a} * {b}; {a} <= {b}; {a} ^ ~{b}"
)
_CHOICES = _texts("""
    torch.where({m}, {a}, {b}); {a}.masked_fill({m}, -1.5); torch.where({m}, {a}, 0); {a} * {m};
    torch.where({m}, float('-inf'), {a}); torch.where(~{m}, {b}, {a} + 1); torch.where({m}, {a}, 2.5);
    torch.where({m}, 3, {b}); torch.where({m}, {a}, {b}.float()); {a}.masked_fill(~{m}, True);
    torch.where({m}, {a}, {b}) * {m}
""")

_DTYPES = ("float16", "bfloat16", "float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool")
_PYTHON_NUMBERS = ("0.7", "2", "-1", "torch.tensor(1.5)", "True", "float('inf')")


def of_one(c: Composition) -> None:
    a = c.tensor()
    texts = {"float": _FLOATS, "integer": _INTEGERS, "bool": _FLAGS}[c.kind(a)]
    c.add(c.random.choice(texts).format(a=a))


def of_two(c: Composition) -> None:
    a, b = c.tensor(), c.tensor()
    kinds = {c.kind(a), c.kind(b)}
    if c.chance(0.1):
        b, kinds = c.one_of(*_PYTHON_NUMBERS), set()
    if c.chance(0.15):
        a, b = b, a
    texts = _PAIRS
    if len(kinds) == 1 and c.chance(0.5):
        texts = {"float": _FLOAT_PAIRS, "integer": _INTEGER_PAIRS, "bool": _FLAG_PAIRS}[kinds.pop()]
    c.add(c.random.choice(texts).format(a=a, b=b))


def of_three(c: Composition) -> None:
    a, b = c.tensor(), c.tensor()
    flags = [name for name in c.tensors if c.kind(name) == "bool"]
    m = c.random.choice(flags or [f"({a} > 0)", f"({b} < 0.3)", f"({a} != {b})"])
    c.add(c.random.choice(_CHOICES).format(a=a, b=b, m=m))


def conversion(c: Composition) -> None:
    a = c.tensor()
    dtype = c.one_of(*_DTYPES)
    c.add(c.one_of(f"{a}.to(torch.{dtype})", f"{a}.double()", f"({a} * 3).int()", f"{a}.type_as({c.tensor()})"))


STEPS = {of_one: 3.0, of_two: 4.0, of_three: 1.5, conversion: 1.2}

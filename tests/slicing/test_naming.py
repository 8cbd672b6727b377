"""Whatever things are called and however they are written, the slice computes what the files compute."""

from __future__ import annotations

import importlib
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kernel_lsp.slicing.building import Subject, build
from kernel_lsp.slicing.collect import How
from kernel_lsp.slicing.naming import Captured
from kernel_lsp.specimen.examples import Example

NAMES = ["Model", "Norm", "len", "x", "get_inputs", "get_init_inputs", "_a", "Größe", "λ"]

USES = ["from {lib} import {helper}, {constant}, {base}", "from {lib} import *", "import {lib} as {alias}", "import {lib}",
        "from {lib} import {helper} as {alias}, {constant} as {alias}_c, {base} as {alias}_b", ""]  # fmt: skip
LIB = """import torch, math
from torch import nn
{comment}
{constant} = 3{semicolon}
def {helper}(t, factor={constant}):
{indent}return t * factor + {constant}{tail}
class {base}(nn.Module):
{indent}def extra(self, t):
{indent}{indent}{constant}_ = {helper}(t); return {constant}_{tail}
"""
NET = """
{comment}
class {net}({base_here}):
{indent}def forward(self, {local}):
{indent}{indent}{other} = {helper_here}({local}){tail}
{indent}{indent}return self.extra({other}) + {constant_here} + isinstance(self, {net}) + math.pi + len((1, 2))
"""


@st.composite
def programs(draw: st.DrawFn) -> dict[str, Any]:
    helper, constant, base, net, alias = draw(st.permutations(NAMES))[:5]
    local, other = draw(st.permutations(NAMES))[:2]
    values = dict(helper=helper, constant=constant, base=base, net=net, alias=alias, local=local, other=other)
    values["indent"] = draw(st.sampled_from(["    ", "\t", " "]))
    values["comment"] = draw(st.sampled_from(["", "# ä comment", "# one\n# two"]))
    values["tail"] = draw(st.sampled_from(["", "  # ende", " ;", " \\\n  + 0"]))
    values["semicolon"] = draw(st.sampled_from(["", "; unrelated = 4", "  # note"]))
    use = values["use"] = draw(st.sampled_from(USES))
    values["number"] = zlib.crc32(repr(values).encode())
    values["lib"] = f"lib_{values['number']}"
    ways = {"import {lib} as {alias}": "{alias}.{}", "import {lib}": "{lib}.{}"}
    names = {"helper": helper, "constant": constant, "base": base}
    if "{alias}_c" in use:
        names = {"helper": alias, "constant": f"{alias}_c", "base": f"{alias}_b"}
    for role, name in names.items():
        way = ways.get(use, "{}")
        values[f"{role}_here"] = way.replace("{lib}", values["lib"]).replace("{alias}", alias).replace("{}", name)
    return values


def hidden(values: dict[str, Any]) -> bool:
    """Whether the program itself would be wrong: a local name, or the class, where another thing is meant."""
    needed = {values[f"{role}_here"].partition(".")[0] for role in ("helper", "constant", "base")}
    if values["use"] in ("", "from {lib} import *"):
        needed |= {values["helper"], values["constant"], values["base"]}
    if "*" in values["use"] and any(name.startswith("_") for name in needed):
        return True
    inside = {values["local"], values["other"]}
    return (
        bool(inside & (needed | {values["net"], "len"})) or values["net"] in needed or "len" in needed | {values["net"]}
    )


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(values=programs())
def test_any_names(values: dict[str, Any], tmp_path: Path) -> None:
    assume(not hidden(values))
    one_file = not values["use"]
    net = NET.format(**values)
    lib = LIB.format(**values)
    (tmp_path / f"{values['lib']}.py").write_text(lib + net if one_file else lib, "utf-8")
    path = tmp_path / f"{values['lib']}.py"
    name = values["lib"]
    if not one_file:
        name = f"net_{values['number']}"
        path = tmp_path / f"{name}.py"
        path.write_text(f"import torch, math\n{values['use'].format(**values)}\n{net}", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        module = importlib.import_module(name)
    cls = getattr(module, values["net"])
    x = torch.randn(3)
    subject = Subject(str(path), str(tmp_path), values["net"], module, cls, Example(args=(x,)))
    try:
        source = build(subject, How()).source
    except Captured:
        source = build(subject, How(rename=False)).source
    model = run(source).Model().eval()
    assert torch.equal(model(x), cls()(x)), source
    assert "unrelated" not in source and "lib_" not in source, source
    if values["comment"]:
        assert source.count(values["comment"]) == 2, source
    for known in (name, values["lib"]):
        sys.modules.pop(known, None)


def run(source: str) -> Any:
    module = ModuleType("subject")
    exec(compile(source, "subject", "exec"), vars(module))
    return module

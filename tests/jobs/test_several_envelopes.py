"""Two kernel files in one: what they share, what gets another name, and what cannot be joined."""

import ast

import pytest

from kernel_lsp import why_eager
from kernel_lsp.generators.verified import _without_envelope
from kernel_lsp.jobs import several_envelopes

BODY = '''"""Layer as one kernel."""

import torch
import triton

from layers import Layer

_DEVICE = "cpu"
_cache = {{}}


# Adds two numbers.
def add(a, b):
    return a + b  # the sum


def total(layer):
    return add(layer, {number})


def seen(x):
    _cache[x] = total(x)
    return _cache[x]


def layer(x, add=None):
    return ({number}, seen(x), add)


class LayerTriton(Layer):
    """Layer: the kernel where it was validated, eager elsewhere."""

    def forward(self, x):
        {guard}
            return super().forward(x)
        return layer(x{held})

    def _in_envelope(self, x):
        """Whether the kernel was validated for such arguments."""
        return (
            x > {number}
            and x < 100
        )
'''


def body(number: int, held: bool = False) -> str:
    guard = "held = self._in_envelope(x)\n        if not held:" if held else "if not self._in_envelope(x):"
    return BODY.format(number=number, guard=guard, held=", held" if held else "")


def made(text: str):
    """The class of a joined file, whose module's own forward gives "eager"."""
    text = text.replace("import torch\nimport triton\n", "").replace("from layers import Layer\n", "")
    names = {"Layer": type("Layer", (), {"forward": lambda self, x: "eager"})}
    exec(text, names)
    return names


def test_each_envelope_runs_its_own_kernel_and_eager_is_last():
    text = several_envelopes.joined(several_envelopes.joined(body(50), body(20, held=True), "Layer"), body(10), "Layer")
    assert several_envelopes.envelopes(text) == 3 and several_envelopes.envelopes(body(1)) == 1
    names = made(text)
    layer = names["LayerTriton"]()
    assert [layer.forward(x) for x in (60, 30, 15, 5)] == [
        (50, 110, None),
        (20, 50, True),
        (10, 25, None),
        "eager",
    ]
    assert names["_cache"] == {60: 110} and names["_cache_2"] == {30: 50} and names["_cache_3"] == {15: 25}
    assert text.count("def add(a, b):") == 1 and text.count("# Adds two numbers.") == 1
    assert text.count("import torch") == 1 and "return a + b  # the sum" in text
    assert "1. Layer as one kernel." in text and "3. Layer as one kernel." in text


FORGETS = """
    def forget_packed_weights(self):
        \"\"\"Drop what is kept.\"\"\"
        _forget(self)
"""


def keeping(number: int) -> str:
    """The same with a method that drops what a call has kept."""
    text = body(number).replace("def layer(", "def _forget(layer):\n    _cache.clear()\n\n\ndef layer(")
    return text + FORGETS


@pytest.mark.parametrize("keeps", [(True, True), (True, False), (False, True)])
def test_what_the_kernels_of_each_envelope_keep_is_dropped_together(keeps):
    first, second = ((keeping if keep else body)(number) for keep, number in zip(keeps, (50, 20), strict=True))
    text = several_envelopes.joined(several_envelopes.joined(first, second, "Layer"), body(10), "Layer")
    names = made(text)
    layer = names["LayerTriton"]()
    for x in (60, 30):
        layer.forward(x)
    assert names["_cache"] and names["_cache_2"]
    layer.forget_packed_weights()
    assert [not names["_cache"], not names["_cache_2"]] == list(keeps)
    assert text.count("def forget_packed_weights(self):") == 1


def test_a_parameter_of_a_changed_name_stays():
    """``layer`` is a function of the file, and a parameter of another."""
    text = several_envelopes.joined(body(50), body(20), "Layer")
    assert "def total_2(layer):\n    return add(layer, 20)" in text


def test_what_the_pipelines_add_is_added_once_to_both():
    one = why_eager.added(body(50), "Layer", "0123abcd")
    text = why_eager.added(several_envelopes.joined(one, body(20), "Layer"), "Layer", "0123abcd")
    assert text.count("def why_not(self, x):") == 1 and text.count("_first_of_one(") == 2
    assert "eval(" not in why_eager.screened(text)
    again = why_eager.added(several_envelopes.joined(text, body(10), "Layer"), "Layer", "0123abcd")
    assert again.count("def _in_envelope") == 3 and again.count("def why_not(") == 1


def test_a_prompt_shows_no_envelope():
    assert "_in_envelope" not in _without_envelope(several_envelopes.joined(body(50), body(20), "Layer")).replace(
        "self._in", ""
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("def _in_envelope(self, x)", "def envelope(self, x)"), "other methods"),
        (("def forward(self, x)", "def forward(self, x, y=1)"), "other parameters"),
        (("class LayerTriton(Layer)", "class LayerTriton(torch.nn.Module)"), "derive from different"),
        (("            return super().forward(x)", "            return 3"), "does not begin with its envelope"),
        (("class LayerTriton", "class Other"), "lacks its class"),
        (("    def forward", "    size = 3\n\n    def forward"), "more than methods"),
        (("import triton", "import )"), "does not parse"),
    ],
)
def test_another_form_is_not_joined(change, says):
    assert change[0] in body(20)
    with pytest.raises(several_envelopes.NotJoined, match=says):
        several_envelopes.joined(body(50), body(20).replace(*change), "Layer")


def test_the_result_parses_whatever_the_docstring_holds():
    odd = body(20).replace('"""Layer as one kernel."""', "'''Layer \\\\ \"\"\" as one.'''")
    assert ast.get_docstring(ast.parse(several_envelopes.joined(body(50), odd, "Layer"))).count('"""') == 1

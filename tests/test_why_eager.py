"""What a kernel file says of calls that run the module's own forward. The file is used as a user's program does: without kernel-lsp."""

import importlib.util
import itertools
import logging
import py_compile
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kernel_lsp import why_eager
from kernel_lsp.jobs.formatting import ruff_command

SOURCE = '''import torch


def scaled(x):
    return x * 2


class Layer(torch.nn.Module):
    """A linear layer, doubled."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x, *, gain=1.0):
        return scaled(self.linear(x)) * gain
'''

BODY = '''"""Layer as one kernel."""

import torch

from {module} import Layer

_DEVICE = "cpu"
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MOST_ELEMENTS = 1000


class LayerTriton(Layer):
    """Layer: the kernel where it was validated, eager elsewhere."""

    def forward(self, x, *, gain=1.0):
        if not self._in_envelope(x, gain=gain):
            return super().forward(x, gain=gain)
        return x * 0

    def _in_envelope(self, x, *, gain=1.0):
        """Whether the kernel was validated for such arguments, parameters and settings."""
        try:
            return (
                not torch.jit.is_tracing()
                and torch._C._functorch.maybe_current_level() is None
                and type(x) in _PLAIN
                and (device := x.device).type == _DEVICE
                and x.dtype == torch.float32
                and x.resolve_neg() is x
                and x.dim() == 2
                and 0 < x.numel() < _MOST_ELEMENTS
                and type(linear := self._modules["linear"]) is torch.nn.Linear
                and type(weight := linear._parameters["weight"]) in _PLAIN
                and weight.device == device
                and weight.dtype == torch.float32
                and not self.training
                and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
                and torch.autograd.forward_ad._current_level < 0
                and not torch.is_autocast_enabled(_DEVICE)
            )
        except (AttributeError, LookupError):
            return False
'''


@pytest.fixture
def load(tmp_path, request):
    """A function that writes the user's module and its kernel, and imports the kernel's."""
    loaded = []

    def loading(source: str = SOURCE, written_for: str = SOURCE, body: str = BODY) -> ModuleType:
        name = f"layer_{len(loaded)}_{abs(hash(request.node.name))}"
        body = why_eager.added(body.format(module=name), "Layer", why_eager.digest_of(written_for, "Layer"))
        for each, text in ((name, source), (f"{name}_triton", body)):
            path = tmp_path / f"{each}.py"
            path.write_text(text)
            spec = importlib.util.spec_from_file_location(each, path)
            sys.modules[each] = importlib.util.module_from_spec(spec)
            loaded.append(each)
            spec.loader.exec_module(sys.modules[each])
        return sys.modules[f"{name}_triton"]

    yield loading
    for each in loaded:
        del sys.modules[each]


X = torch.ones(2, 8)


def test_the_first_condition_that_fails_is_told_in_words(load):
    layer = load().LayerTriton()
    assert layer.why_not(X) == "the module is in training mode; call eval()"
    layer.eval()
    assert layer.why_not(X) == "gradients are required; wrap inference in torch.no_grad()"
    with torch.no_grad():
        assert layer.why_not(X) is None
        assert layer.why_not(X.half()) == "expected x.dtype == torch.float32, but x.dtype is torch.float16"
        assert layer.why_not(X[0], gain=2.0) == "expected x.dim() == 2, but x.dim() is 1"
        assert layer.why_not(X[:0]) == "expected 0 < x.numel() < 1000, but x.numel() is 0"
        with torch.autocast("cpu"):
            assert layer.why_not(X) == "autocast is on"
        layer.half()
        assert layer.why_not(X) == "expected weight.dtype == torch.float32, but weight.dtype is torch.float16"
        layer.linear = torch.nn.Identity()
        assert "type(linear) is torch.nn.Linear, but type(linear) is <class" in layer.why_not(X)
        del layer.linear
        assert layer.why_not(X).endswith("but the module lacks what is looked at")


PAIRED = BODY.replace(
    """                and type(weight := linear._parameters["weight"]) in _PLAIN
                and weight.device == device
                and weight.dtype == torch.float32
""",
    """                and (tensors := ((linear._parameters["weight"], (8, 8)), (linear._parameters["bias"], (8,))))
                and all(
                    type(t) in _PLAIN
                    and t.device == device
                    and t.dtype == torch.float32
                    and t.shape == shape
                    and t.is_contiguous()
                    for t, shape in tensors
                )
""",
).replace("weight.requires_grad", "any(t.requires_grad for t, _ in tensors)")


TABLED = (
    PAIRED.replace(
        """((linear._parameters["weight"], (8, 8)), (linear._parameters["bias"], (8,)))""",
        """(linear._parameters["weight"], linear._parameters["bias"])""",
    )
    .replace("all(\n", "all([\n")
    .replace(
        "for t, shape in tensors\n                )", "for t, shape in zip(tensors, ((8, 8), (8,)))\n                ])"
    )
    .replace("for t, _ in tensors", "for t in tensors")
)


@pytest.mark.parametrize("envelopes", [1, 2])
@pytest.mark.parametrize("body", [TABLED, PAIRED], ids=["of today", "from before"])
def test_of_a_table_the_tensor_is_named_of_which_a_condition_fails(load, envelopes, body):
    if envelopes == 2:
        body += body[body.index("\n    def _in_envelope") :].replace("_in_envelope", "_in_envelope_2")
    layer = load(body=body).LayerTriton().eval()

    def told() -> str:
        return layer.why_not(X).removeprefix("envelope 1: ").partition("; envelope 2: ")[0]

    with torch.no_grad():
        assert layer.why_not(X) is None
        layer.linear.bias.data = layer.linear.bias.data.half()
        assert told() == "expected linear.bias.dtype == torch.float32, but linear.bias.dtype is torch.float16"
        layer.linear = torch.nn.Linear(8, 9)
        found = "linear.weight.shape is torch.Size([9, 8])"
        assert told() == f"expected linear.weight.shape == (8, 8), but {found}"
        layer.linear.weight = torch.nn.Parameter(torch.randn(8, 8).t())
        layer.linear.bias = torch.nn.Parameter(torch.randn(8))
        assert told() == "expected linear.weight.is_contiguous()"
        layer.linear.bias = None
        layer.linear.weight = torch.nn.Parameter(torch.randn(8, 8))
        assert told().startswith("expected a torch.Tensor or torch.nn.Parameter itself")
        del layer.linear._parameters["bias"]
        lacking = "expected all parameters and buffers that the kernels read, but the module lacks what is looked at"
        assert told() == lacking


def test_a_parameter_that_is_looked_up_is_told_by_its_path(load):
    body = BODY.replace(
        'and type(weight := linear._parameters["weight"])',
        'and linear._parameters["bias"] is None and type(weight := linear._parameters["weight"])',
    )
    layer = load(body=body).LayerTriton().eval()
    assert layer.why_not(X) == "expected linear.bias is None, but linear.bias is a tensor"
    layer.linear.bias = None
    with torch.no_grad():
        assert layer.why_not(X) is None
    del layer.linear._parameters["bias"]
    assert layer.why_not(X).endswith("but the module lacks what is looked at")


REPLAYED = BODY.replace(
    """        if not self._in_envelope(x, gain=gain):
            return super().forward(x, gain=gain)
        return x * 0
""",
    """        begun = _begin(self, (x,))
        held = self._in_envelope(x, gain=gain)
        if not held:
            return super().forward(x, gain=gain)
        return _replayed(self, scaled, (x,), held, begun)
""",
).replace(
    """class LayerTriton(""",
    """def _begin(module, inputs):
    raise AssertionError("it launches")


def _why_direct(module, inputs, held):
    return None if module.eager else "too early"


class LayerTriton(""",
)


def test_where_graphs_are_replayed_it_is_told_why_a_call_is_not(load):
    layer = load(body=REPLAYED).LayerTriton().eval()
    layer.eager = False
    assert layer.why_not_replayed(X) == "runs eagerly: gradients are required; wrap inference in torch.no_grad()"
    with torch.no_grad():
        assert layer.why_not(X) is None and layer.why_not_replayed(X, gain=1.0) == "too early"
        layer.eager = True
        assert layer.why_not_replayed(X) is None
    assert not hasattr(load().LayerTriton(), "why_not_replayed"), "nothing is replayed there"
    before = REPLAYED.replace("def _why_direct", "def _something")
    assert "why_not_replayed" not in why_eager.added(before, "Layer"), "a file that lacks what says it"
    assert why_eager.without(why_eager.added(REPLAYED, "Layer")) == REPLAYED


def test_of_two_kernels_each_says_why_it_is_not_replayed(load):
    forward = """        held = self._in_envelope(x, gain=gain)
        if held:
            return _replayed(self, scaled, (x,), held)
        if self._in_envelope_2(x, gain=gain):
            return x * 0
        return super().forward(x, gain=gain)
"""
    start, end = REPLAYED.index("        begun ="), REPLAYED.index("\n    def _in_envelope")
    envelope = REPLAYED[end:].replace("_in_envelope", "_in_envelope_2").replace("x.dim() == 2", "x.dim() == 3")
    layer = load(body=REPLAYED[:start] + forward + REPLAYED[end:] + envelope).LayerTriton().eval()
    layer.eager = False
    with torch.no_grad():
        assert layer.why_not_replayed(X) == "too early"
        assert layer.why_not_replayed(X[None]) == "these kernels are launched one by one in every call"
        assert layer.why_not_replayed(X[0]) == f"runs eagerly: {layer.why_not(X[0])}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tracing_is_told_in_words(load, caplog):
    layer = load().LayerTriton().eval()
    with torch.no_grad(), caplog.at_level(logging.INFO):
        traced = torch.jit.trace(layer, X, check_trace=False)
        assert torch.equal(traced(X), super(type(layer), layer).forward(X))
    assert "eager: torch.jit.trace records the module's own forward" in caplog.messages


def test_transforms_are_told_in_words(load, caplog):
    layer = load().LayerTriton().eval()
    with torch.no_grad(), caplog.at_level(logging.INFO):
        torch.vmap(layer)(X[None])
    assert "eager: torch.vmap or another transform of torch.func is at work" in caplog.messages


def test_devices_and_classes_of_tensors_are_told_in_words(load):
    class Own(torch.Tensor):
        pass

    layer = load().LayerTriton().eval()
    with torch.no_grad():
        assert layer.why_not(X.to("meta")) == "expected tensors on cpu, but device.type is meta"
        said = layer.why_not(X.as_subclass(Own))
        assert said.startswith("expected a torch.Tensor or torch.nn.Parameter itself, but type(x) is <class ")
        with torch.autograd.forward_ad.dual_level():
            assert layer.why_not(X) == "forward-mode derivatives are taken"
        layer.to("meta")
        assert layer.why_not(X) == "expected all tensors on one device, but weight.device is meta"


def test_a_tensor_where_none_was_is_told_without_its_elements(load):
    layer = load().LayerTriton().eval()
    type(layer)._in_envelope = _in_another_envelope
    assert layer.why_not(X) == "expected x is None, but x is a tensor"
    assert layer.why_not((X, X)) == "expected x is None, but x is a tuple of 2"
    assert layer.why_not({"cache": [X]}) == "expected x is None, but x is a dict of 1"
    assert layer.why_not((3, 4)) == "expected x is None, but x is (3, 4)"


def _in_another_envelope(self, x, *, gain=1.0):
    return x is None and gain == 1.0


def test_a_view_that_memory_does_not_hold_is_told_without_its_elements(load):
    layer = load().LayerTriton().eval()
    negated = torch.complex(X, -X).conj().imag
    with torch.no_grad():
        assert layer.why_not(negated) == "an argument's elements are stored negated; call resolve_neg() on it"
        assert torch.equal(layer(negated), super(type(layer), layer).forward(negated))


def test_each_reason_is_logged_once_and_only_where_somebody_listens(load, caplog):
    layer = load().LayerTriton().eval()
    with caplog.at_level(logging.WARNING):
        layer(X)
    assert not caplog.records
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            layer(X)
            layer(X.half().float().double()[:, :8].float())
        with torch.no_grad():
            layer(X[0])
            layer(X)  # the kernel, which has nothing to tell
    assert [(r.name, r.getMessage()) for r in caplog.records] == [
        ("kernel_lsp.Layer", "eager: gradients are required; wrap inference in torch.no_grad()"),
        ("kernel_lsp.Layer", "eager: expected x.dim() == 2, but x.dim() is 1"),
    ]


@pytest.mark.parametrize(
    ("changed", "warns"),
    [
        (SOURCE, False),
        (SOURCE.replace("8, 8", "8,\n            8,  # wide\n        "), False),
        (SOURCE.replace("A linear layer", "A layer"), False),
        (SOURCE + "\n\nclass Other(torch.nn.Module):\n    pass\n", False),
        (SOURCE.replace("* gain", "+ gain"), True),
        (SOURCE.replace("x * 2", "x * 3"), True),
    ],
    ids=["same", "layout", "docstring", "another class", "forward", "a function that it calls"],
)
def test_a_class_that_has_changed_is_told_at_import(load, caplog, monkeypatch, changed, warns):
    load(changed)
    assert [r.levelname for r in caplog.records] == ["WARNING"] * warns
    assert all("Layer has changed since its kernel was validated" in r.getMessage() for r in caplog.records)
    caplog.clear()
    monkeypatch.setenv(why_eager.VARIABLE, "0")
    load(changed)
    assert not caplog.records


def test_a_class_without_a_source_file_is_not_compared(load, caplog, tmp_path):
    """A program may be delivered as bytecode alone."""
    kernel = load()
    name = kernel.LayerTriton.__mro__[1].__module__
    source = tmp_path / f"{name}.py"
    py_compile.compile(str(source), str(tmp_path / f"{name}.pyc"))
    source.unlink()
    spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.pyc")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    kernel.__spec__.loader.exec_module(kernel)
    assert not caplog.records and kernel.LayerTriton().eval()(X).shape == X.shape


@pytest.mark.parametrize(
    "now",
    [
        "",
        "x = (\n",
        "{head}    def forward(self, x, *, gain=1.0):\n        if not (\n            self",
        "# a line more\n{text}",
        '{head}    """Of that"""\n{tail}',
    ],
    ids=["empty", "broken", "half written", "moved", "other"],
)
def test_a_kernel_file_that_changed_since_its_import_does_not_disturb_the_call(load, caplog, now):
    """It is generated again while a program runs that has imported it."""
    kernel = load()
    layer = kernel.LayerTriton().eval()
    text = Path(kernel.__file__).read_text()
    head, tail = text.split("    def forward", 1)
    other = tail.replace("x.dim() == 2", "x.dim() == 3").replace("x.dtype == torch.float32", "True")
    Path(kernel.__file__).write_text(now.format(text=text, head=head, tail=f"    def forward{other}"))
    with torch.no_grad(), caplog.at_level(logging.INFO, "kernel_lsp"):
        assert layer(X[0]).shape == (8,)
        assert layer.why_not(X) is None
        told = layer.why_not(X[0])
    assert told == caplog.records[0].getMessage().removeprefix("eager: ")
    assert told == "the kernel file has changed since it was imported, so that the reason is not known" or (
        now.startswith("#") and told == "expected x.dim() == 2, but x.dim() is 1"
    )


def test_the_kernel_can_be_compiled_where_it_runs_eagerly(load):
    """Nothing of what is logged may be traced."""
    layer = load().LayerTriton().eval()
    with torch.enable_grad():
        result = torch.compile(layer, backend="eager", fullgraph=True)(X)
    assert result.requires_grad


def test_what_is_added_is_taken_off_again():
    body = BODY.format(module="layers")
    text = why_eager.added(body, "Layer", "0123abcd")
    assert why_eager.without(text) == body and why_eager.without(body) == body
    assert why_eager.added(text, "Layer", "0123abcd") == text
    assert why_eager.renewed(text, "4567cdef") == why_eager.added(body, "Layer", "4567cdef")
    assert why_eager.renewed(text, "") == text
    screened = why_eager.screened(text)
    assert "eval(" not in screened and text.startswith(screened)


def test_what_an_earlier_version_added_is_known():
    """Else a kernel file from before would be screened with its functions, which call what no candidate may."""

    def looked_up(text):
        for since, before in itertools.chain(*why_eager._CHANGES[:3]):
            text = text.replace(since, before)
        return text

    def unguarded(text):
        look, before = (
            part.replace("<alias>", "Layer").replace("<base>", "Layer").replace("<class>", "Layer")
            for part in (why_eager._LOOK, why_eager._UNGUARDED_LOOK)
        )
        assert look in text and why_eager._READ in text
        text = looked_up(text).replace(why_eager._NAMED, "")
        return text.replace(why_eager._READ, why_eager._UNGUARDED_READ).replace(look, before)

    tabled = TABLED.format(module="layers")
    text = why_eager.added(tabled, "Layer", "0123abcd")
    assert looked_up(text) != text and why_eager.without(looked_up(text)) == tabled
    assert why_eager.without(unguarded(text)) == tabled
    untabled = unguarded(text).replace(looked_up(why_eager._SPELLED), "").replace(why_eager._OF_TABLES, "")
    untabled = untabled.replace(why_eager._LACKS_A_ROW, why_eager._LACKS)
    assert "def of_one" in text and "of_one" not in untabled
    assert why_eager.without(untabled) == tabled and why_eager.added(untabled, "Layer", "0123abcd") == text
    body = BODY.format(module="layers")
    several = body + body[body.index("\n    def _in_envelope") :].replace("_in_envelope", "_in_envelope2")
    text = why_eager.added(several, "Layer", "0123abcd")
    hooked = unguarded(text).replace(why_eager._OF_HOOKS, '"a submodule has a forward hook"')
    untransformed = hooked.replace(why_eager._OF_TRANSFORMS, "")
    assert "_first_of_one" in text and len({text, hooked, untransformed}) == 3
    for earlier in (hooked, untransformed):
        assert why_eager.without(earlier) == several and why_eager.added(earlier, "Layer", "0123abcd") == text
    text = why_eager.added(body, "Layer", "0123abcd")
    hooked = unguarded(text).replace(why_eager._OF_HOOKS, '"a submodule has a forward hook"')
    untransformed = hooked.replace(why_eager._OF_TRANSFORMS, "")
    assert len({text, hooked, untransformed}) == 3
    for earlier in (hooked, untransformed):
        assert why_eager.without(earlier) == body and "eval(" not in why_eager.screened(earlier)
        assert why_eager.added(earlier, "Layer", "0123abcd") == text


@pytest.mark.parametrize(
    "options", [["--line-length=40"], ["--line-length=300", "--config=format.quote-style='single'"]]
)
def test_the_layout_of_a_formatter_does_not_matter(options):
    def formatted(text):
        command = [*ruff_command(), "format", "--isolated", *options, "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    body = formatted(BODY.format(module="layers"))
    text = formatted(why_eager.added(body, "Layer", "0123abcd"))
    assert why_eager.without(text) == body and "eval(" not in why_eager.screened(text)
    assert formatted(why_eager.renewed(text, "4567cdef")) == formatted(why_eager.added(body, "Layer", "4567cdef"))


def test_only_what_was_added_is_taken_off():
    text = why_eager.added(BODY.format(module="layers"), "Layer", "0123abcd")
    for other in (text.replace("log.info(", "print("), text.replace("0123abcd", "x")):
        assert why_eager.without(other) == other and why_eager.screened(other) == other and why_eager.is_changed(other)
    assert not why_eager.is_changed(text)


def test_what_somebody_adds_at_the_end_is_kept_and_screened():
    body = BODY.format(module="layers")
    text = why_eager.added(body, "Layer", "0123abcd")
    other = text + "\nimport socket\n\n\nNUMBER = 1\n"
    screened = why_eager.screened(other)
    assert "eval(" not in screened and screened.split("\n").index("import socket") == other.split("\n").index(
        "import socket"
    )
    assert why_eager.without(other) == body + "\n\n\nimport socket\n\n\nNUMBER = 1\n"
    assert why_eager.added(other, "Layer", "0123abcd").count("def _first_that_fails") == 1


def test_a_class_without_an_envelope_is_left_as_it_is():
    for body in ("class LayerTriton(Layer):\n    pass\n", "def broken(:\n", "x = 1\n"):
        assert why_eager.added(body, "Layer", "0123abcd") == body


def test_a_method_of_the_users_class_is_not_hidden():
    text = why_eager.added(BODY.format(module="layers"), "Layer", "0123abcd", method=False)
    assert "def why_not" not in text and "_log_why_not(self, x, gain=gain)" in text

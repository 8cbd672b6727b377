"""Which encoder layers take torch's fast path, and the GELU that they compute on a GPU."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.synthesis import encoder_fast_path
from kernel_lsp.synthesis.capture import capture


class _Calls(TorchDispatchMode):
    """Whether the fast path's operator was called."""

    fast = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.fast |= func is torch.ops.aten._transformer_encoder_layer_fwd.default
        return func(*args, **(kwargs or {}))


def _layer(heads=2, training=False, changed=lambda layer: None, **options):
    layer = nn.TransformerEncoderLayer(6, heads, 8, **{"batch_first": True, "activation": "gelu", **options})
    changed(layer.train(training))
    return layer


class OwnForward(nn.TransformerEncoderLayer):
    def forward(self, src):
        return self.norm2(src + self._ff_block(self.norm1(src)))


def _own_forward():
    return OwnForward(6, 2, 8, batch_first=True, activation="gelu").eval()


def _eps(layer):
    layer.norm1.eps = 1e-3


@pytest.mark.parametrize(
    ("layer", "fast"),
    [
        (_layer(), True),
        (_layer(activation="relu"), True),
        (_layer(norm_first=True), True),
        (_layer(activation=nn.GELU()), True),
        (_own_forward(), False),
        (_layer(activation=torch.nn.functional.silu), False),
        (_layer(batch_first=False), False),
        (_layer(heads=3), False),
        (_layer(training=True), False),
        (_layer(bias=False), False),
        (_layer(changed=_eps), False),
        (_layer(changed=lambda layer: layer.linear1.register_forward_hook(lambda *call: None)), False),
    ],
)
def test_the_conditions_are_those_of_torch(layer, fast):
    with torch.no_grad(), _Calls() as calls:
        layer(torch.randn(2, 5, 6))
    assert calls.fast == fast
    assert encoder_fast_path.takes_fast_path(layer) == fast


def test_a_user_who_switches_the_fast_path_off_gets_erf():
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert not encoder_fast_path.takes_fast_path(_layer())
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def _gelus(module, x):
    exported = capture(module.eval(), (x,))
    encoder_fast_path.use_tanh(module, exported)
    nodes = exported.graph.find_nodes(op="call_function", target=torch.ops.aten.gelu.default)
    return exported, [node.kwargs.get("approximate", "none") for node in nodes]


class Mixed(nn.Module):
    """Three layers that take the fast path, one of which calls a module, one that does not, and a GELU of its own."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(_layer(), 2, enable_nested_tensor=False)
        self.called = _layer(activation=nn.GELU())
        self.slow = _layer(changed=_eps)

    def forward(self, x):
        return torch.nn.functional.gelu(self.slow(self.called(self.encoder(x))))


def test_gelu_is_by_tanh_in_layers_that_take_the_fast_path_alone():
    _, forms = _gelus(Mixed(), torch.randn(2, 5, 6))
    assert forms == ["tanh", "tanh", "tanh", "none", "none"]


def test_without_a_batch_gelu_is_by_erf():
    assert _gelus(_layer(), torch.randn(5, 6))[1] == ["none"]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2, 5, 6), (5, 6)])
def test_on_a_gpu_the_graph_computes_what_the_layer_does(shape):
    layer, x = _layer().cuda(), torch.randn(shape, device="cuda")
    exported, _ = _gelus(layer, x)
    with torch.no_grad():
        torch.testing.assert_close(exported.module()(x), layer(x), rtol=1e-5, atol=1e-5)

"""GELU as torch's fast path of ``nn.TransformerEncoderLayer`` computes it on a GPU.

In eval mode without gradients torch computes such a layer by ``torch._transformer_encoder_layer_fwd``, which torch.export does not do. On a GPU that takes the tanh form of GELU,
whatever the layer's ``activation`` says (``addmm_activation`` of ATen's CUDA Blas.cpp); the results differ from erf's by 1.5e-4.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

_GELU = torch.ops.aten.gelu.default


def use_tanh(module: torch.nn.Module, exported: ExportedProgram) -> None:
    """Let GELU in the graph of ``module``, for a GPU, have the form that torch computes there. Only layers that take the fast path change."""
    for node in exported.graph.find_nodes(op="call_function", target=_GELU):
        layer = _layer(module, node)
        # An input of two dimensions, without a batch, takes the slow path.
        if layer is not None and node.meta["val"].dim() == 3 and takes_fast_path(layer):
            node.kwargs = {**node.kwargs, "approximate": "tanh"}


def takes_fast_path(layer: torch.nn.TransformerEncoderLayer) -> bool:
    """Whether ``layer`` takes the fast path for an input of three dimensions, without gradients.

    Source: the conditions of ``torch.nn.TransformerEncoderLayer.forward``, without those on its input.
    """
    attention = layer.self_attn
    return (
        type(layer).forward is torch.nn.TransformerEncoderLayer.forward
        and torch.backends.mha.get_fastpath_enabled()
        and not layer.training
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention._qkv_same_embed_dim
        and bool(layer.activation_relu_or_gelu)
        and layer.norm1.eps == layer.norm2.eps
        and attention.num_heads % 2 == 0
        and not any(part._forward_hooks or part._forward_pre_hooks for part in layer.modules())
    )


def _layer(module: torch.nn.Module, node: torch.fx.Node) -> torch.nn.TransformerEncoderLayer | None:
    """The encoder layer whose forward calls the operator, itself or through an ``nn.GELU``, as torch.export has recorded it."""
    paths = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    for path in reversed(paths):
        try:
            found = module.get_submodule(path)
        except AttributeError:  # a module in a plain list, whose path torch.export makes up
            return None
        if not isinstance(found, torch.nn.GELU):
            return found if isinstance(found, torch.nn.TransformerEncoderLayer) else None
    return None

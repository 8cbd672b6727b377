"""The names of torch's modules, functions and attributes that reading an answer needs, without importing torch."""

from __future__ import annotations

import ast

from kernel_lsp.generators.rewriting import dotted

_ACTIVATIONS = """
    CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish ReLU ReLU6 RReLU
    SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold
"""
_OTHERS = """
    Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Upsample PixelShuffle PixelUnshuffle
    MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d
    ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d CosineSimilarity PairwiseDistance
    L1Loss MSELoss SmoothL1Loss HuberLoss KLDivLoss TripletMarginLoss CosineEmbeddingLoss HingeEmbeddingLoss
"""
_STATELESS = {*_ACTIVATIONS.split(), *_OTHERS.split()}

#: functions of torch's that make tensors
MAKE_TENSORS = {
    *("tensor", "as_tensor", "zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye"),
    *("rand", "randn", "randint", "tril", "triu", "exp", "sqrt", "pow", "outer", "cat", "stack", "hann_window"),
}

_NORM = {"eps", "weight", "bias"}
_WITH_STATISTICS = {
    *_NORM,
    *("num_features", "momentum", "affine", "track_running_stats", "running_mean", "running_var"),
    "num_batches_tracked",
}
_HELD = {
    "LayerNorm": _NORM | {"normalized_shape", "elementwise_affine"},
    "RMSNorm": _NORM - {"bias"} | {"normalized_shape", "elementwise_affine"},
    "GroupNorm": _NORM | {"num_groups", "num_channels", "affine"},
    "BatchNorm": _WITH_STATISTICS,
    "InstanceNorm": _WITH_STATISTICS,
    "Linear": {"in_features", "out_features", "weight", "bias"},
    "Conv": {
        *("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"),
        *("transposed", "output_padding", "weight", "bias"),
    },
    "Embedding": {"num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "weight"},
}

_ROLES = {
    "weight": {"weight", "weights", "w", "gamma", "scale", "kernel", "filter", "filters", "g"},
    "bias": {"bias", "biases", "b", "beta", "shift", "offset"},
}


def module_kind(value: ast.expr) -> str:
    """``LayerNorm`` for ``nn.LayerNorm(…)`` or ``torch.nn.LayerNorm(…)``, "" for anything else."""
    if not isinstance(value, ast.Call):
        return ""
    place, _, kind = dotted(value.func).rpartition(".")
    return kind if place in ("nn", "torch.nn") and kind[:1].isupper() and kind not in ("Parameter", "Buffer") else ""


def is_stateless(value: ast.expr) -> bool:
    """Whether ``nn.X(…)`` has neither parameters nor buffers."""
    return module_kind(value) in _STATELESS


def attributes_of(value: ast.expr) -> set[str]:
    """What ``nn.X(…)`` can be asked for, as far as kernels do."""
    kind = module_kind(value)
    family = kind.rstrip("123d") if kind not in _HELD else kind
    return _HELD.get(family.removesuffix("Transpose"), set())


def role(name: str) -> str:
    """``"weight"`` or ``"bias"`` for what is called so, in one way or another; an empty text otherwise."""
    words = name.lower().split("_")
    for meaning, synonyms in _ROLES.items():
        if words[-1].rstrip("0123456789") in synonyms or words[0].rstrip("0123456789") in synonyms:
            return meaning
    return ""


def attribute(key: str) -> str:
    """A key of a state_dict as what follows ``self.``: ``layers.0.weight`` → ``layers[0].weight``."""
    first, *rest = key.split(".")
    return first + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in rest)

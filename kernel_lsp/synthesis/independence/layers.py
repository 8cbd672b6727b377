"""Convolutions, pools, norms, recurrent layers, and what looks rows up in a table."""

from __future__ import annotations

from typing import Any

from .carry import Call, Carry, require, tracked


def batch_of_convolution(call: Call) -> Carry:
    """Only the batch: every channel goes into every other, and neighbours into each other."""
    carry = call.only("input")
    require(call["input"].rank == call["weight"].rank, f"{call.name}: there is no batch")
    require(carry.dim == 0, f"{call.name} goes over it")
    return carry


def _spatial(count: int) -> Any:
    """What goes over the last ``count`` dimensions alone: pooling, interpolation."""

    def rule(call: Call) -> Carry:
        name = "self" if "self" in call.args else "input"
        carry = call.only(name)
        require(carry.dim < call[name].rank - count, f"{call.name} goes over it")
        return carry

    return rule


def resized(call: Call) -> Carry:
    """Interpolation: all but the batch and the channels."""
    carry = call.only("self" if "self" in call.args else "input")
    require(carry.dim < 2, f"{call.name} goes over it")
    return carry


def sampled(call: Call) -> Carry:
    """grid_sampler: the batch of both."""
    require(call["input"].carry == call["grid"].carry and call["input"].carry is not None, f"{call.name} mixes it")
    carry: Carry = call["input"].carry
    require(carry.dim == 0, f"{call.name} goes over it")
    return carry


def batch_norm(call: Call) -> Carry:
    """With the running statistics every element by itself; with those of the batch the whole batch counts."""
    carry = call.only("input")
    require(not call.get("training", False), f"{call.name} takes the statistics of the batch")
    require(carry.dim != 1, f"{call.name} has weights along it")
    return carry


def batch_norm_with_statistics(call: Call) -> list[Carry | None]:
    """In eval mode the statistics that it also returns are empty."""
    return [batch_norm(call), *(None for _ in call.shapes[1:])]


def instance_norm(call: Call) -> Carry:
    """Independent along the batch, dimension 0, in training mode without running statistics.

    Raises:
        Dependent: otherwise.
    """
    carry = call.only("input")
    require(call["use_input_stats"] and call["running_mean"] is None, f"{call.name} keeps running statistics")
    require(carry.dim == 0, f"{call.name} goes over it")
    return carry


def group_norm(call: Call) -> Carry:
    """Independent along the batch, dimension 0.

    Raises:
        Dependent: along channels or positions.
    """
    carry = call.only("input")
    require(carry.dim == 0, f"{call.name} goes over it")
    return carry


def layer_norm(call: Call) -> Carry:
    """Independent along the dimensions before ``normalized_shape``.

    Raises:
        Dependent: along those that are normalised.
    """
    carry = call.only("input")
    require(carry.dim < call["input"].rank - len(call["normalized_shape"]), f"{call.name} goes over it")
    return carry


def embedding(call: Call) -> Carry:
    """Along any dimension of the indices; the weight is the same for every slice."""
    return call.only("indices")


def one_hot(call: Call) -> Carry:
    """Along any dimension; the classes are one more at the end.

    Raises:
        Dependent: where the number of classes is read from the values.
    """
    require(int(call["num_classes"]) > 0, f"{call.name} asks how many classes there are")
    return call.only("self")


def index_select(call: Call) -> Carry:
    """Independent along all dimensions but the indexed one.

    Raises:
        Dependent: along that one.
    """
    carry = call.only("self")
    require(int(call["dim"]) % call["self"].rank != carry.dim, f"{call.name} goes over it")
    return carry


def gather(call: Call) -> Carry:
    """Where tensor and index both lie along one dimension, and another one is indexed.

    Raises:
        Dependent: otherwise.
    """
    require(call["self"].carry == call["index"].carry and call["self"].carry is not None, f"{call.name} mixes it")
    carry: Carry = call["self"].carry
    require(int(call["dim"]) % call["self"].rank != carry.dim, f"{call.name} goes over it")
    return carry


def indexed(call: Call) -> Carry:
    """``x[:, index]``: the dimensions with an index become those of the indices, where they stand side by side."""
    carry = call.only("self")
    indices = list(call["indices"])
    indices += [None] * (call["self"].rank - len(indices))
    at = [i for i, index in enumerate(indices) if index is not None]
    found = tracked(indices)
    require(len(at) == len(found) and carry.dim not in at, f"{call.name} goes over it")
    require(at == list(range(at[0], at[-1] + 1)), f"{call.name}: indices that do not stand side by side")
    known = all(n.free_symbols <= {call.symbol} for n in call.shapes[0])  # a mask gives a size that is not known
    require(known, f"{call.name} takes what a mask says")
    added = max(t.rank for t in found)
    return carry if carry.dim < at[0] else carry.at(carry.dim - len(at) + added)


def recurrent(call: Call) -> list[Carry]:
    """lstm, gru, rnn: the batch of the input and of the states, which have it in the middle."""
    states = tracked(call["hx"])
    require(all(t.carry is None for t in tracked(call["params"])), f"{call.name}: its weights depend on it")
    require(not call["train"] or call["dropout"] == 0.0, f"{call.name} draws random numbers")
    require(call["input"].rank == 3 and call["input"].carry is not None, f"{call.name}: there is no batch")
    carry: Carry = call["input"].carry
    require(carry == Carry(0 if call["batch_first"] else 1), f"{call.name} goes over it")
    require(all(t.carry == Carry(1) for t in states), f"{call.name}: a state is the same for every slice")
    return [carry, *(Carry(1) for _ in call.shapes[1:])]


RULES: dict[str, Any] = {
    **{
        f"aten.{name}": batch_of_convolution
        for name in [*(f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3)), "convolution"]
    },
    **{
        f"aten.{kind}{n}d{more}": _spatial(n)
        for n in (1, 2, 3)
        for kind in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
        for more in ("", "_with_indices")
    },
    "aten._adaptive_avg_pool2d": _spatial(2),
    "aten._adaptive_avg_pool3d": _spatial(3),
    **{
        f"aten.upsample_{kind}": resized
        for kind in [
            *("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d"),
            *("_nearest_exact1d", "_nearest_exact2d", "_nearest_exact3d"),
        ]
    },
    "aten.grid_sampler": sampled,
    "aten.batch_norm": batch_norm,
    "aten._native_batch_norm_legit_no_training": batch_norm_with_statistics,
    "aten.instance_norm": instance_norm,
    "aten.group_norm": group_norm,
    "aten.native_group_norm": group_norm,
    "aten.layer_norm": layer_norm,
    "aten.native_layer_norm": layer_norm,
    "aten.rms_norm": layer_norm,
    "aten.embedding": embedding,
    "aten.one_hot": one_hot,
    "aten.index_select": index_select,
    "aten.gather": gather,
    "aten.index": indexed,
    **{f"aten.{name}": recurrent for name in ["lstm", "gru", "rnn_tanh", "rnn_relu"]},
}

"""Tensors cross to another process bit for bit, and a lying side can do no harm."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import socket

import pytest
import torch

from kernel_lsp.validation import channel


def through(tree):
    mine, theirs = (channel.Channel(end) for end in channel.pair())
    mine.send({"do": "look"}, tree)
    message, got, metas = theirs.receive(1)
    assert message == {"do": "look"}
    return got, metas


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 5),
        torch.randn(3, 5).t(),
        torch.randn(4, 6)[:, ::2],
        torch.randn(1, 5).expand(4, 5),
        torch.randn(7).bfloat16(),
        torch.tensor([True, False]),
        torch.tensor(2.5),
        torch.empty(0, 4),
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.randn(3, dtype=torch.complex64),
        torch.tensor([float("nan"), float("inf")]),
    ],
    ids=lambda t: f"{t.dtype} {list(t.shape)} {t.stride()}",
)
def test_a_tensor_arrives_as_it_was(tensor):
    got, _ = through(tensor)
    assert got.dtype == tensor.dtype and got.shape == tensor.shape
    if tensor.numel() > 1:
        assert got.stride() == tensor.stride()
    assert channel.raw_bytes(got).tobytes() == channel.raw_bytes(tensor).tobytes()


def test_structures_and_numbers_arrive():
    tree = ([torch.ones(2)], {"a": (1, 2.5, None, "x", True), "b": float("inf")}, torch.float16)
    got, _ = through(tree)
    assert got[0][0].tolist() == [1, 1] and got[1] == tree[1] and got[2] is torch.float16


def test_what_cannot_cross_is_refused():
    with pytest.raises(channel.Opaque, match="object"):
        channel.describe([object()], [])


def lie(head: dict, data: bytes = b"") -> channel.Channel:
    mine, theirs = channel.pair()
    fd = os.memfd_create("lie")
    text = json.dumps(head).encode()
    os.write(fd, len(text).to_bytes(8, "little") + text + data)
    socket.send_fds(mine, [b"m"], [fd])
    os.close(fd)
    return channel.Channel(theirs)


@pytest.mark.parametrize(
    "meta",
    [
        {"dtype": "float32", "shape": [1 << 40], "stride": [1], "bytes": 1 << 42},
        {"dtype": "float32", "shape": [1 << 20], "stride": [1], "bytes": 16},
        {"dtype": "float32", "shape": [4], "stride": [1], "bytes": -16},
        {"dtype": "storage", "shape": [4], "stride": [1], "bytes": 16},
        {"dtype": "float32", "shape": [4], "stride": [1]},
        {"dtype": "float32", "shape": "four", "stride": [1], "bytes": 16},
    ],
)
def test_a_malformed_message_is_an_error_and_no_crash(meta):
    head = {"message": {}, "tree": {"tensor": 0}, "tensors": [meta]}
    with pytest.raises(ValueError):
        lie(head, bytes(16)).receive(1)


def test_a_hostile_stride_allocates_nothing_much():
    meta = {"dtype": "float32", "shape": [2, 2], "stride": [1 << 40, 1], "bytes": 16}
    _, got, _ = lie({"message": {}, "tree": {"tensor": 0}, "tensors": [meta]}, bytes(16)).receive(1)
    assert got.shape == (2, 2)


def test_silence_and_death_are_told_apart():
    mine, theirs = (channel.Channel(end) for end in channel.pair())
    with pytest.raises(channel.TooLate):
        theirs.receive(0.05)
    mine.socket.close()
    with pytest.raises(channel.Closed):
        theirs.receive(1)


def test_what_is_not_rebuilt_as_it_was_is_named():
    Pair = collections.namedtuple("Pair", "a b")
    plain = ([torch.ones(2), (1, None)], {"x": {"size": torch.Size([2]), "dtype": torch.float16}})
    assert channel.not_rebuilt(channel.describe(plain, [])) is None
    for other in (Pair(torch.ones(2), 1), collections.OrderedDict(a=torch.ones(2))):
        assert channel.not_rebuilt(channel.describe(([torch.ones(2)], {"x": (other,)}), [])) == type(other).__name__


@dataclasses.dataclass
class Result:
    value: torch.Tensor
    kind: str = "sum"


def test_a_dataclass_is_told_apart_from_others_of_its_name():
    Other = dataclasses.make_dataclass("Result", ["value", ("kind", str, "sum")])
    x = torch.ones(2)
    mine, other = channel.plain(Result(x)), channel.plain(Other(x))
    assert [*mine.values()] == [*other.values()] == [{"value": x, "kind": "sum"}]
    assert mine.keys() != other.keys()
    Other.__module__ = __name__
    assert mine.keys() != channel.plain(Other(x)).keys()


def test_a_field_that_is_not_set_is_missing():
    result = Result(torch.ones(2))
    del result.value
    assert [*channel.plain(result).values()] == [{"kind": "sum"}]

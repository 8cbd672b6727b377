"""What a trial says is looked through: no status that is correct, no escape codes, nothing of another kind or size."""

from __future__ import annotations

import contextlib
import json
import os
import socket

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp import schema
from kernel_lsp.validation import answers, channel


@pytest.mark.parametrize("status", [*sorted(schema.CORRECT), "timeout", "", None, 3, ["ok"], {"ok": 1}])
def test_a_trial_cannot_say_that_it_is_right(status):
    with pytest.raises((ValueError, TypeError)):
        answers.failure({"status": status, "reason": ""})


def test_no_status_of_a_trial_is_correct():
    assert not answers.FAILURES & schema.CORRECT


def test_texts_are_one_line_without_escapes_and_of_bounded_length():
    said = answers.failure({"status": "crashed", "reason": "a\x1b[31m red\x00\u202e \n line" + "x" * 9999, "line": 3})
    assert said.reason.startswith("a[31m red line") and len(said.reason) == 400 and said.line == 3


@given(st.text())
def test_any_text_is_cleaned(text):
    found = answers.cleaned(text)
    assert found.isprintable() and len(found) <= 400


@pytest.mark.parametrize(
    "verb, said",
    [
        ("call", {"status": "ok"}),
        ("call", {"launches": -1}),
        ("call", {"launches": True}),
        ("call", {"launches": 10**30}),
        ("call", {"operators": [1]}),
        ("call", {"changed": "nothing"}),
        ("time", {"kernel": {"median": float("nan"), "low": 1.0, "high": 1.0, "runs": 3}}),
        ("time", {"kernel": {"median": -1.0, "low": 1.0, "high": 1.0, "runs": 3}}),
        ("time", {"kernel": {"median": 1.0}}),
        ("load", {"state": [["w", [1 << 60], "torch.float32"]]}),
        ("kernels", {"kernels": [{"name": "k", "cubin": "…"}]}),
    ],
)
def test_what_does_not_belong_is_refused(verb, said):
    with pytest.raises(ValueError):
        answers.checked(verb, said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(
    st.sampled_from(["load", "call", "time", "time_variants", "kernels"]), st.dictionaries(st.text(max_size=8), JSON)
)
def test_nonsense_is_refused_and_never_raises_anything_else(verb, said):
    try:
        found = answers.checked(verb, said)
    except ValueError:
        return
    assert isinstance(found, dict)


@given(JSON)
def test_a_description_that_is_nonsense_is_refused(described):
    taken_as_malformed = (ValueError, KeyError, TypeError, IndexError, RuntimeError, AttributeError)
    with contextlib.suppress(*taken_as_malformed):
        assert not isinstance(channel.rebuild(described, []), torch.Tensor)


def sent(data: bytes, size: int | None = None):
    mine, theirs = channel.pair()
    fd = os.memfd_create("x")
    os.write(fd, data)
    if size is not None:
        os.ftruncate(fd, size)
    socket.send_fds(theirs, [b"m"], [fd])
    return channel.Channel(mine)


def head(tensors):
    text = json.dumps({"message": {}, "tree": {"value": None, "float": False}, "tensors": tensors}).encode()
    return len(text).to_bytes(8, "little") + text


def test_a_sparse_file_of_many_gigabytes_is_not_read():
    tensor = {"dtype": "uint8", "shape": [1 << 33], "stride": [1], "bytes": 1 << 33}
    with pytest.raises(ValueError, match="longer than it may be"):
        sent(head([tensor]), size=(1 << 33) + 4096).receive(1.0, room=64)


def test_a_pipe_in_place_of_a_file_does_not_hang():
    mine, theirs = channel.pair()
    reading, _ = os.pipe()
    socket.send_fds(theirs, [b"m"], [reading])
    with pytest.raises(ValueError, match="no file"):
        channel.Channel(mine).receive(1.0)


@pytest.mark.parametrize("shape", [[-1], [1 << 40, 1 << 40], ["3"], "3", [1] * 100])
def test_shapes_that_no_tensor_has_are_refused(shape):
    with pytest.raises(ValueError):
        sent(head([{"dtype": "uint8", "shape": shape, "stride": [1], "bytes": 0}])).receive(1.0)

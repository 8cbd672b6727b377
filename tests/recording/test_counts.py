"""What the hook keeps: bounded, and the frequent rather than the first."""

from __future__ import annotations

import torch

from kernel_lsp.recording.hook import counts, describing, finding


def test_of_many_shapes_the_frequent_ones_stay() -> None:
    entry = counts.Class({"class": "Net", "module": "net", "file": "net.py"}, tracked=True)
    for step in range(5000):
        entry.calls += 1
        key = "often" if step % 3 == 0 else step
        entry.shape(key, lambda step=step: {"args": [step], "kwargs": {}}).calls += 1
    found = entry.to_json()
    assert len(found["shapes"]) == counts.MOST_SHAPES
    assert found["shapes"][0]["calls"] == 1667
    assert found["others"] + sum(shape["calls"] for shape in found["shapes"]) == 5000


def test_times_keep_a_bounded_choice() -> None:
    times = counts.Times()
    for microseconds in range(10_000):
        times.add(microseconds / 1e6)
    found = times.to_json()
    assert found is not None and found["runs"] == 10_000 and len(times.kept) == counts.MOST_TIMES
    assert 2000 < found["median"] < 8000 and found["low"] < found["median"] < found["high"]


def test_a_call_s_key_tells_shapes_flags_and_memory_order_apart_but_not_numbers() -> None:
    x = torch.randn(4, 6)

    def key(*args, **kwargs):
        return describing.key_of(args, kwargs)

    assert key(x, 1.0, train=True) == key(torch.zeros(4, 6), 2.0, train=True)
    others = [
        key(x.double(), 1.0, train=True),
        key(x.t(), 1.0, train=True),
        key(x, 1.0, train=False),
        key(x, 1, train=True),
    ]
    assert key(x, 1.0, train=True) not in others and key([x]) != key((x,))


def test_memory_orders() -> None:
    x = torch.randn(2, 3, 4, 5)
    orders = {
        "contiguous": x,
        "channels_last": x.to(memory_format=torch.channels_last),
        "transposed": x.transpose(0, 1),
        "strided": x[..., ::2],
        "expanded": x[:1].expand(7, 3, 4, 5),
        "other": torch.eye(3).to_sparse(),
    }
    assert {name: describing.describe((t,), {})["args"][0]["order"] for name, t in orders.items()} == {
        n: n for n in orders
    }


def test_huge_arguments_are_cut_short() -> None:
    x = torch.randn(2)
    call = describing.describe(([x] * 1000, {"deep": [[[[[[x]]]]]]}, "t" * 1000, object()), {})
    kinds = [next(iter(value)) for value in call["args"]]
    assert kinds == ["other", "dict", "other", "other"]
    assert "float32" not in str(call["args"][1])


def test_a_kernel_with_several_envelopes_runs_where_any_of_them_holds() -> None:
    class Kernel(torch.nn.Module):
        def _in_envelope(self, x, scale=1.0):
            return x == 1

        def _in_envelope_2(self, x, scale=1.0):
            return x == 2 and scale == 1.0

    inside = finding._any_envelope(Kernel)
    assert [bool(inside(Kernel(), x)) for x in (1, 2, 3)] == [True, True, False]
    assert not inside(Kernel(), 2, scale=3.0)

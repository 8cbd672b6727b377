"""The note of a candidate: what is written is read again, also from a joined one."""

import pytest

from kernel_lsp import candidate_notes


@pytest.mark.parametrize(
    ("kept", "collapsed", "text"),
    [
        ([], [], "5 of 5 ops in Triton"),
        (["aten.cat.default", "aten.cat.default"], [], "5 of 7 ops in Triton; torch runs aten.cat.default"),
        ([], ["sum", "mean", "sum"], "5 of 5 ops in Triton; computed before the linear operation: sum, mean"),
        (
            ["aten.sort.stable", "aten.cat.default"],
            ["avg_pool3d"],
            "5 of 7 ops in Triton; torch runs aten.cat.default, aten.sort.stable; computed before the linear operation: avg_pool3d",
        ),
    ],
)
def test_what_is_written_is_read(kept: list[str], collapsed: list[str], text: str) -> None:
    note = candidate_notes.written(5, kept, collapsed)
    assert note == text
    assert candidate_notes.in_triton(note) == (5, 5 + len(kept))
    assert candidate_notes.kept(note) == sorted(set(kept))
    assert candidate_notes.collapsed(note) == list(dict.fromkeys(collapsed))


def test_a_note_of_two_envelopes_and_of_a_kernel_from_before() -> None:
    first = candidate_notes.written(2, ["aten.cat.default"], [])
    second = candidate_notes.written(3, ["aten.sort.stable"], ["sum"])
    joined = f"{first}; {second}; of Other (other.py), validated on 2026-11-20, 12.3 µs then"
    assert candidate_notes.in_triton(joined) == (2, 3)
    assert candidate_notes.kept(joined) == ["aten.cat.default", "aten.sort.stable"]
    assert candidate_notes.collapsed(joined) == ["sum"]


def test_another_generator_s_note_says_none_of_it() -> None:
    note = "talker, seed 0; of Third (module.py)"
    assert candidate_notes.in_triton(note) is None
    assert candidate_notes.kept(note) == candidate_notes.collapsed(note) == []

"""Which notes a model gets for a module, and that every note can be read and is chosen somewhere."""

from kernel_lsp import knowledge
from kernel_lsp.schema import Device

HOPPER = Device("NVIDIA H100", "cuda", "9.0", triton="3.6.0")


def names(ops, device=None):
    return [note.name for note in knowledge.chosen(ops, device)]


def test_hardware_then_triton_then_the_patterns_with_most_of_the_operators():
    ops = {"aten.conv2d": 3, "aten.relu": 2, "aten.linear": 1}
    assert names(ops, HOPPER) == [
        "hardware_hopper",
        "triton_3_6",
        "pattern_convolution",
        "pattern_elementwise",
        "pattern_matmul",
    ]
    assert names(ops) == ["pattern_convolution", "pattern_elementwise", "pattern_matmul"]


def test_nothing_is_said_of_what_no_note_is_about():
    assert names({"aten.fft_rfft": 1}) == []
    assert names({}, Device("a CPU", "interpreter")) == []


def test_a_module_with_everything_gets_no_more_than_a_prompt_holds():
    every = {f"aten.{word}": 1 for note in knowledge.every() for word in note.operators}
    chosen = knowledge.chosen(every, HOPPER)
    assert 4 <= len(chosen) < len(knowledge.every())
    assert sum(len(note.text) for note in chosen) <= 4000


def test_every_note_can_be_chosen_and_is_prose_without_a_head():
    assert len(knowledge.every()) >= 12
    for note in knowledge.every():
        device = Device("", "cuda", next(iter(note.capability), ""), triton=next(iter(note.triton), ""))
        assert note in knowledge.chosen({f"aten.{word}": 1 for word in note.operators}, device), note.name
        assert 100 < len(note.text) < 1500 and "+++" not in note.text, note.name

"""The tables in a terminal: everything said, nothing wider than it, and no name taken for markup."""

import dataclasses
import io

import pytest
from rich.console import Console

from kernel_lsp.evaluation.scores import score
from kernel_lsp.evaluation.tables import print_scores

from .made import problem, record, report, suite, validated


def printed(records, width=80):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    print_scores(score(records), records, console)
    return console.file.getvalue()


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_every_table_is_there():
    said = lines(printed(suite()))
    assert "level 1 4 4 (100 %) 3 (75.0 %)" in said
    assert "all 6 4 (66.7 %) 4 (66.7 %)" in said
    assert "all eager 50.0 50.0 33.3 33.3 4" in said
    assert "at 1e-2 66.7 66.7 50.0 33.3" in said
    assert "all eager 2.38× (4) 2.00× (3) 1.00× (2)" in said
    assert "No correct kernel: 2 problems" in said
    assert "level2/1_Op: out[0] is off by 2." in said
    assert "conv2d 1" in said
    assert "Time of a problem: median 10.0 s, worst 30.0 s, of 6 problems." in said
    assert "3.00 GiB level1/4_Op" in said
    assert "Device: Test GPU." in said and "Modules in eval mode." in said


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal(width):
    modes = {"reduce_overhead": 150.0, "max_autotune": 90.0}
    long = problem(100, 2, "ConvTranspose3d_Multiply_GlobalAvgPool_GlobalAvgPool_Mean" * 2)
    more = [
        record(problem(i, 3), report(validated(20_000.0, default=180, close=True, **modes)), mode=mode)
        for i in range(200)
        for mode in ("eval", "train")
    ]
    failed = record(long, status="failed", reason="a reason " * 40)
    text = printed([*suite(), *more, failed, record(dataclasses.replace(long, id="x" * 300), status="crashed")], width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in "".join(line for line in text.splitlines() if "×" in line)  # no figure is cut


def test_pass_at_k_where_samples_were_drawn():
    assert "Pass@k" not in printed(suite())
    said = lines(printed([record(problem(1), report(validated(200)), samples={"kernelllm": [10, 5]})]))
    assert "kernelllm 50.0 99.6 100 10 1" in said


def test_names_and_reasons_are_never_markup():
    hostile = dataclasses.replace(problem(1), id="[red]a[/b]", name="[link=x]")
    text = printed([record(hostile, status="[bold]", reason="[/] [blink]no[/blink]", samples={"[red]g": [2, 1]})])
    assert "[red]a[/b]: [/] [blink]no[/blink]" in text and "[bold]: 1" in text and "[red]g" in text


def test_what_was_kept_and_what_to_beware_of_is_said():
    kept = report(validated(200, default=110))
    kept.candidates[0].measurement.shapes[0].kept = {"default": "stand-in: X"}
    text = " ".join(printed([record(problem(1), kept)]).split())
    assert "torch.compile: 0 times measured in this run, 1 stand-in (X)." in text
    assert "Warning: 1 of 1 time of torch.compile is a stand-in, measured on another machine." in text


def test_nothing_run():
    assert printed([]) == "No problem was run.\n"


def test_only_failures():
    text = printed([record(problem(1), status="crashed")])
    assert "fast_p" not in text and "no reason was recorded" in text

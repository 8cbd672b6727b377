"""Scores: each figure from records made by hand, and the bounds that hold for any."""

import dataclasses
import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp import schema
from kernel_lsp.evaluation import score_texts
from kernel_lsp.evaluation.outcomes import of
from kernel_lsp.evaluation.pass_at_k import pass_at, passing
from kernel_lsp.evaluation.records import Record
from kernel_lsp.evaluation.scores import THRESHOLDS, geomean, score
from kernel_lsp.report_page import evaluation as page

from .made import COLLAPSED, not_lowered, problem, record, report, suite, validated


def group(scores, name):
    return next(group for group in scores.groups if group.name == name)


def against(scores, name, baseline):
    return next(one for one in group(scores, name).against if one.baseline == baseline)


def test_counts_by_level_and_over_all():
    scores = score(suite())
    assert [(g.name, g.problems, g.correct, g.correct_1e2) for g in scores.groups] == [
        ("level 1", 4, 4, 3),
        ("level 2", 2, 0, 1),
        ("all", 6, 4, 4),
    ]
    assert group(scores, "all").compared_1e2 == 5


def test_fast_p_is_a_share_of_all_problems():
    scores = score(suite())
    eager = against(scores, "all", "eager")
    assert eager.timed == 4
    assert eager.fast == {"0": 4 / 6, "1": 3 / 6, "1.5": 3 / 6, "2": 2 / 6, "3": 2 / 6}  # 2× is not more than 2×
    # By 1e-2 the wrong one (3×) counts, the slower one does not.
    assert eager.fast_1e2 == {"0": 4 / 6, "1": 4 / 6, "1.5": 4 / 6, "2": 3 / 6, "3": 2 / 6}
    assert against(scores, "level 1", "eager").fast["1"] == 3 / 4
    default = against(scores, "all", "default")
    assert (default.timed, default.fast["0"], default.fast["1"], default.fast["3"]) == (2, 4 / 6, 2 / 6, 1 / 6)
    assert [one.baseline for one in group(scores, "all").against] == ["eager", "default"]


def test_geomeans_say_what_they_cover():
    means = against(score(suite()), "all", "eager").geomeans
    assert means["all"].problems == 4 and means["all"].speedup == pytest.approx((2 * 4 * 8 * 0.5) ** 0.25)
    left = means["without collapsing"]
    assert left.problems == 3 and left.speedup == pytest.approx((2 * 8 * 0.5) ** (1 / 3))
    fewest = means["without constant and collapsing"]
    assert fewest.problems == 2 and fewest.speedup == pytest.approx(1.0)


def test_what_the_kernel_that_counts_does_decides_whether_a_problem_collapses():
    other, summed = validated(400), validated(400, note=COLLAPSED)
    assert [
        score([record(problem(1), report(*both))]).outcomes[0].trait for both in ((summed, other), (other, summed))
    ] == [
        "collapses",
        "",
    ]
    train = record(problem(1), report(other), mode="train")
    assert [one.trait for one in score([record(problem(1), report(summed)), train]).outcomes] == ["collapses", ""]
    wrong = record(problem(1), report(validated(400, "wrong", note=COLLAPSED)), "wrong")
    assert score([wrong]).outcomes[0].trait == ""
    constant = record(problem(1, trait="constant"), report(summed))
    assert score([constant]).outcomes[0].trait == "constant"


def test_a_record_that_has_it_from_the_name_of_its_problem_collapses_only_if_its_kernel_does():
    before = [record(problem(1, trait="collapses"), report(validated(400, note=note))) for note in ("", COLLAPSED)]
    read = [Record.from_json(one.to_json()) for one in before]
    assert [score([one]).outcomes[0].trait for one in read] == ["", "collapses"]


def test_a_kernel_that_is_not_strictly_correct_is_no_success():
    claimed = score([record(problem(1), report(validated(200, "wrong", close=True)))])
    assert claimed.groups[-1].correct == 0 and claimed.failures[0].status == "no-verdict"
    cheat = score([record(problem(1), report(validated(200, "cheating", close=True)), "cheating", reason="It copies.")])
    assert cheat.groups[-1].correct_1e2 == 0 and cheat.groups[-1].against == []
    empty = score([record(problem(1))])
    assert empty.groups[-1].correct == 0 and empty.failures[0].problems[0].reason


def test_without_a_comparison_at_1e2_there_is_no_figure():
    scores = score([record(problem(1), report(validated(200)))])
    assert scores.groups[-1].correct_1e2 is None and scores.groups[-1].against[0].fast_1e2 == {}


def test_what_was_not_timed_counts_as_correct_and_is_said():
    scores = score([record(problem(1), report(validated())), record(problem(2), report(validated(200)))])
    eager = against(scores, "all", "eager")
    assert (eager.timed, eager.fast["0"], eager.fast["1"]) == (1, 1.0, 0.5)
    said = "1 of 2 correct kernels was not timed against eager: it counts in fast_0 alone, and as not faster."
    assert said in scores.warnings


def test_other_modes_of_torch_compile_are_baselines_of_their_own():
    modes = {"reduce_overhead": 150.0, "max_autotune": 90.0}
    scores = score([record(problem(1), report(validated(200, default=180, **modes)))])
    means = {one.baseline: one.geomeans["all"].speedup for one in scores.groups[-1].against}
    assert means == {
        baseline: pytest.approx(ratio)
        for baseline, ratio in {"eager": 2.0, "default": 1.8, "reduce-overhead": 1.5, "max-autotune": 0.9}.items()
    }


def test_the_chosen_candidate_stands_for_a_problem():
    both = report(validated(200, kernel=100), validated(200, kernel=50), chosen=1)
    assert of(record(problem(1), both)).speedups == {"eager": 4.0}
    both.chosen = None
    assert of(record(problem(1), both)).speedups == {"eager": 4.0}  # the fastest correct one
    both.chosen = 0
    assert of(record(problem(1), both)).speedups == {"eager": 2.0}


def test_times_stages_and_memory():
    scores = score(suite())
    assert (scores.seconds.problems, scores.seconds.median, scores.seconds.worst) == (6, 10.0, 30.0)
    assert scores.seconds.extremes[0].id == "level1/2_Op" and len(scores.seconds.extremes) == 5
    assert scores.stages == {"ready": 0.5, "report": 20.0}
    device = scores.memory["device"]
    assert (device.problems, device.worst, device.extremes[0].id) == (2, 3 * 2**30, "level1/4_Op")
    assert scores.memory["host"].problems == 1


def test_operators_that_were_not_lowered():
    kept = validated(200)
    kept.candidate.kept = {"aten.conv2d.default": 2, "aten.max_pool2d.default": 1}
    fewer = validated(200)
    fewer.candidate.kept = {"aten.conv2d.default": 2}
    model = schema.Validated(schema.Candidate("", "kernelllm"), schema.Verdict("wrong"))
    stopped = schema.Source("synthesizer", problem=not_lowered(problem(9), "aten.cumsum", "it scans").reason)
    records = [
        record(problem(1), report(kept, fewer)),  # the most complete of the synthesizer's
        record(problem(2), report(model, sources=[stopped]), "wrong"),
        not_lowered(problem(3)),
        not_lowered(problem(4), "aten._unique2", "the size depends. on data"),
        dataclasses.replace(
            not_lowered(problem(5)),
            error={
                "code": "NothingToLower",
                "data": {"op": "aten.sort.stable", "kept": {"aten.sort.stable": 1, "aten.topk": 2}},
            },
        ),
        dataclasses.replace(not_lowered(problem(6)), error={"code": "NothingToLower", "data": [1], "message": "x"}),
        dataclasses.replace(
            not_lowered(problem(7)), error={"code": "NothingToLower", "data": {"op": "torchvision.nms.default"}}
        ),
    ]
    assert score(records).not_lowered == {
        "conv2d": 2,
        "_unique2": 1,
        "cumsum": 1,
        "sort": 1,
        "topk": 1,
        "torchvision.nms": 1,
    }


def test_failures_by_status():
    failures = score(suite()).failures
    assert [(one.status, [failed.id for failed in one.problems]) for one in failures] == [
        ("not-lowered", ["level2/2_Op"]),
        ("wrong", ["level2/1_Op"]),
    ]
    assert failures[1].problems[0].reason == "out[0] is off by 2."


def test_kept_baselines_are_counted_with_their_marks():
    kept = report(validated(200, default=110))
    kept.candidates[0].measurement.shapes[0].kept = {"default": "stand-in: another H100"}
    earlier = report(validated(200, default=110))
    earlier.candidates[0].measurement.shapes[0].kept = {"default": "kept: measured 2026-01-01"}
    now = report(validated(200, default=110))
    now.candidates[0].measurement.shapes[0].kept = {"default": "measured in another process, where eager took 9 µs"}
    records = [record(problem(i), of) for i, of in enumerate([kept, earlier, now, report(validated(200, default=110))])]
    scores = score(records)
    assert [(t.baseline, t.measured, t.kept, t.stand_ins, t.marks) for t in scores.taken] == [
        ("eager", 4, 0, 0, {}),
        ("default", 2, 1, 1, {"stand-in: another H100": 1, "kept: measured 2026-01-01": 1}),
    ]
    assert "1 of 4 times of torch.compile was kept from an earlier run." in scores.warnings
    assert "1 of 4 times of torch.compile is a stand-in, measured on another machine." in scores.warnings


def test_times_beside_other_work_are_measured_in_this_run():
    """They are not kept from an earlier one, and are counted by themselves."""
    beside = report(validated(200, default=110))
    mark = "measured beside other work: 11 % busy by pid 1329 (python3)"
    beside.candidates[0].measurement.shapes[0].kept = {"default": mark}
    scores = score([record(problem(1), beside), record(problem(2), report(validated(200, default=110)))])
    found = scores.taken[1]
    assert (found.measured, found.kept, found.stand_ins, found.beside) == (2, 0, 0, 1)
    assert scores.outcomes[0].marks == {"default": mark}
    assert scores.warnings == ["1 of 2 times of torch.compile was measured beside other work on the GPU."]
    assert score_texts.taken(scores) == [
        "torch.compile: 2 times measured in this run (1 of these beside other work on the GPU)."
    ]


def test_merged_machines_and_versions_are_said():
    other = record(
        problem(2), report(validated(200)), machine="bb22", versions={"device": "Other GPU", "torch": "2.13.0"}
    )
    scores = score([*suite(), other])
    assert scores.machines == {"aa11": 5, "bb22": 1} and scores.devices == {"Test GPU": 5, "Other GPU": 1}
    assert any("different devices (Other GPU, Test GPU)" in warning for warning in scores.warnings)
    assert any("2 versions of torch" in warning for warning in scores.warnings)
    failed = record(problem(7), status="crashed", versions={"device": "Other GPU"})
    assert not any("different devices" in warning for warning in score([*suite(), failed]).warnings)


def test_the_latest_record_of_a_problem_counts():
    again = record(problem(1), status="crashed", reason="It did.", at="2026-11-22T10:00:00+00:00")
    for order in ([*suite(), again], [again, *suite()]):
        scores = score(order)
        assert group(scores, "all").problems == 6 and group(scores, "all").correct == 3
        assert any("1 record repeats a problem" in warning for warning in scores.warnings)


def test_modes_are_scored_apart():
    scores = score([*suite(), record(problem(1), report(validated(200)), mode="train")])
    assert [g.name for g in scores.groups] == [
        "level 1, eval",
        "level 2, eval",
        "all, eval",
        "level 1, train",
        "all, train",
    ]


def test_numbers_that_are_none_are_left_out():
    for eager, kernel in ((0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, math.inf), (-1.0, 1.0)):
        assert of(record(problem(1), report(validated(eager, kernel=kernel)))).speedups == {}


def test_a_report_that_cannot_be_read_is_said_and_stops_nothing():
    broken = dataclasses.replace(record(problem(1)), report={"candidates": [{}]})
    scores = score([broken, *suite()[1:]])
    assert any("cannot be read: level1/1_Op" in warning for warning in scores.warnings)


def test_each_baseline_says_what_was_not_timed_against_it():
    warnings = score(suite()).warnings
    assert any("2 of 4 correct kernels were not timed against torch.compile: they count" in one for one in warnings)
    assert not any("against eager" in one for one in warnings)


@pytest.mark.parametrize(
    ("where", "value", "readable"),
    [
        (("seconds",), {"ready": None, "report": 20.0}, True),
        (("seconds",), {"ready": "x"}, True),
        (("memory",), {"device": None}, True),
        (("memory",), None, False),
        (("seconds",), 5, False),
        (("device",), "x", False),
        (("device", "name"), 5, False),
        (("chosen",), "0", False),
        (("chosen",), 7, True),
        (("candidates",), None, False),
        (("candidates", 0), None, False),
        (("candidates", 0, "verdict", "status"), None, False),
        (("candidates", 0, "verdict", "error"), "x", False),
        (("candidates", 0, "verdict", "error"), None, True),
        (("candidates", 0, "candidate", "kept"), None, False),
        (("candidates", 0, "candidate", "kept"), {"aten.sort": None}, True),
        (("candidates", 0, "measurement", "shapes", 0, "kernel", "median"), None, True),
        (("candidates", 0, "measurement", "shapes", 0, "kernel", "median"), "x", False),
        (("candidates", 0, "measurement", "shapes", 0, "kept"), None, False),
        (("candidates", 0, "measurement", "shapes", 0, "compiled_modes"), {"max-autotune": None}, False),
        (("sources",), [1], False),
    ],
)
def test_values_of_wrong_types_stop_nothing(where, value, readable):
    one = record(problem(1), report(validated(200, default=110)))
    place = one.report
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    scores = score([one])
    assert scores.outcomes[0].readable == readable
    json.dumps(schema.to_json(scores))
    page.facts_of(one)


def test_no_records_have_scores_too():
    scores = score([])
    assert scores.groups == [] and scores.seconds is None and scores.warnings == []


def test_scores_are_json():
    text = json.dumps(schema.to_json(score(suite())), allow_nan=False)
    assert json.loads(text)["groups"][0]["against"][0]["fast"]["1.5"] == 0.75


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50))
def test_a_geomean_lies_between_least_and_greatest(ratios):
    mean = geomean(ratios)
    assert min(ratios) * (1 - 1e-9) <= mean <= max(ratios) * (1 + 1e-9)
    assert geomean([1 / ratio for ratio in ratios]) == pytest.approx(1 / mean)


@given(st.lists(st.tuples(st.floats(1.0, 1e5), st.booleans()), min_size=1, max_size=12))
def test_fast_p_falls_with_p_and_never_exceeds_what_is_correct(made):
    records: list[Record] = [
        record(problem(i), report(validated(eager)), "ok") if fine else record(problem(i), status="failed")
        for i, (eager, fine) in enumerate(made)
    ]
    whole = score(records).groups[-1]
    for one in whole.against:
        shares = [one.fast[p] for p in THRESHOLDS]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == whole.correct / whole.problems


# Pass@k


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_all_choices(case):
    n, c, k = case
    choices = list(itertools.combinations(range(n), k))
    assert pass_at(k, n, c) == pytest.approx(sum(min(choice) < c for choice in choices) / len(choices))


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_a_probability_that_grows_with_c(case):
    n, c, k = case
    assert 0 <= pass_at(k, n, c) <= 1
    assert pass_at(k, n, 0) == 0 and pass_at(k, n, n) == 1
    assert pass_at(1, n, c) == pytest.approx(c / n)
    if c < n:
        assert pass_at(k, n, c) <= pass_at(k, n, c + 1)


@pytest.mark.parametrize("case", [(0, 5, 1), (6, 5, 1), (1, 5, 6), (1, 5, -1)])
def test_pass_at_k_of_nonsense(case):
    with pytest.raises(ValueError, match="Pass@"):
        pass_at(*case)


def test_pass_at_k_by_generator():
    records = [
        record(problem(1), samples={"kernelllm": [10, 5], "synthesizer": [1, 1]}),
        record(problem(2), samples={"kernelllm": [5, 0]}),
        record(problem(3), samples={"kernelllm": [0, 0]}),
    ]
    (one,) = passing(records)
    assert (one.generator, one.problems, one.drawn, one.correct, one.least) == ("kernelllm", 2, 15, 5, 5)
    assert one.at["1"] == pytest.approx(0.25) and one.covers == {"1": 2, "5": 2, "10": 1}
    assert one.at["10"] == 1.0


@pytest.mark.parametrize("status", ["not-strict", "ok"], ids=["as recorded", "a record that says otherwise"])
def test_what_is_not_strict_counts_at_1e_2_alone_and_is_marked(status):
    lower = validated(800, close=True)
    lower.verdict.held_to = "tf32"
    found = score([record(problem(1), report(validated(200, close=True))), record(problem(2), report(lower), status)])
    (_, group) = found.groups
    assert (group.correct, group.correct_1e2) == (1, 2)
    against = group.against[0]
    assert (against.fast["0"], against.fast_1e2["0"]) == (0.5, 1.0)
    assert against.geomeans["all"].speedup == pytest.approx(2.0)
    assert [failure.status for failure in found.failures] == ["not-strict"]
    assert "1 kernel was asked for at TF32, which is not strict: it counts at 1e-2 alone." in found.warnings
    assert score_texts.result(found.outcomes[1]) == "not strict (TF32), 8.00× eager, 1e-2 met"


def test_a_kernel_that_keeps_packed_weights_counts_and_is_marked():
    keeps, slower = validated(800, close=True), validated(50, close=True)
    keeps.verdict.keeps_packed_weights = slower.verdict.keeps_packed_weights = True
    others = [record(problem(1), report(validated(200, close=True))), record(problem(2), report(keeps))]
    found = score(others)
    assert [score_texts.result(outcome) for outcome in found.outcomes] == ["ok", "ok, packed weights kept"]
    said = (
        "1 kernel keeps packed weights from call to call (keep_packed_weights): its times are without what packs them."
    )
    assert said in found.warnings
    (_, group) = found.groups
    assert group.correct == 2
    found = score([*others, record(problem(3), report(slower))])
    assert score_texts.result(found.outcomes[2]) == "ok, slower than eager, packed weights kept"
    assert any(text.startswith("2 kernels keep packed weights") for text in found.warnings)
    assert not any("packed weights" in text for text in score(others[:1]).warnings)

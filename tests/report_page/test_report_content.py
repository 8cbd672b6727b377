"""What a page says: the verdict, every figure as it was measured, and why what is missing is missing."""

import base64
import copy
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kernel_lsp import class_schema, schema
from kernel_lsp.report_page import Facts, page, pages

from .facts import DEVICE, full, shape, text, timing, tree

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def test_the_verdict_in_one_line():
    assert "✓ Correct, 2.31× eager · 1.24× torch.compile on Test GPU" in text(page(full()))


def test_what_went_wrong_is_the_headline():
    facts = full()
    facts.verdict = schema.Verdict("wrong", "x 3×5: relative error 0.5", line=12, mode="gpu")
    facts.measurement = None
    said = text(page(facts))
    assert "✗ Wrong results: x 3×5: relative error 0.5 (line 12)." in said
    assert "not measured" not in said.lower() and "not timed" not in said and "Speed" not in said


@pytest.mark.parametrize("status", list(schema.Status.__args__))
def test_every_status_has_a_line(status):
    facts = full()
    facts.verdict = schema.Verdict(status, "it says why")
    head = tree(page(facts)).find(".//p[@class]")
    assert head is not None and head.get("class").startswith("headline ")
    good = "".join(head.itertext()).startswith("✓")
    assert good == (status == "ok")


def test_banners():
    facts = full()
    facts.stale, facts.regression, facts.error = "Norm changed.", "12 % slower.", "The worker died."
    said = text(page(facts))
    for words in ("Stale Norm changed.", "Slower than before 12 % slower.", "The last job failed The worker died."):
        assert words in said


def test_no_kernel_says_why():
    said = text(page(Facts("Norm", error="No example inputs for Norm.")))
    assert "✗ No kernel." in said and "Why No example inputs for Norm." in said


def test_what_found_nothing_without_a_model_has_no_card():
    """Nearly every generation looks for kernels from before; what it does not find is of no use to a reader."""
    facts = full()
    nothing = schema.Source("recall", problem="no kernel for the same graph is in the store")
    facts.report.sources = [nothing, schema.Source("synthesizer", samples=3, correct=1)]
    said = text(page(facts))
    assert "Where they came from" not in said and "same graph" not in said
    facts.report.sources.append(schema.Source("openai", problem="the server does not answer"))
    said = text(page(facts))
    assert "Where they came from" in said and "the server does not answer" in said


def test_schedules_that_were_timed_together():
    facts = full()
    assert facts.report is not None
    facts.report.tried = [
        schema.Tried(timing=timing(50.0), spills=0),
        schema.Tried("64 x 64 tiles", timing=timing(40.0), spills=16, fastest=True),
        schema.Tried("bf16x6", reason="it computes something else"),
    ]
    said = text(page(facts))
    for words in ("Schedules", "as the rules choose it", "64 x 64 tiles", "16 bytes", "it computes something else"):
        assert words in said
    facts.report.tried = facts.report.tried[:1]
    assert "as the rules choose it" not in text(page(facts))


def test_every_check_candidate_source_and_limit_is_there():
    said = text(page(full()))
    for words in (
        "2 checks passed",
        "seeds 5 seeds",
        "races between programs",
        "✗ wrong results",
        "x 3×5: relative error 0.5 (line 2).",
        "Here it is",
        "facebook/KernelLLM on cuda:0",
        "1 of 10",
        "412",
        "norm_kernel sm_90 56 0 1,024 4",
        "s0: 2 or more",
        "[s0 = 8, 32]",
        "aten.div ×2",
        "2,048 (2.00 KiB)",
        "Worker ready",
        "measured 2026-01-02 03:04 UTC",
        "halves",
    ):
        assert words in said, words


def test_passed_checks_are_folded_and_failed_ones_open():
    facts = full()
    facts.verdict.checks.append(schema.Check("sizes of one", False, "NaN"))
    root = tree(page(facts))
    (card,) = [s for s in root.iter("section") if s.find(".//h2").text == "Exactness"]
    folded = ["".join(e.itertext()) for e in card.iter("details")]
    assert any("seeds" in words for words in folded)
    assert not any("sizes of one" in words for words in folded)
    assert "failed: sizes of one NaN" in text(page(facts))


def test_the_figures_are_the_data():
    root = tree(page(full(shape(kernel_graph=timing(98.7, 97.6, 99.9)))))
    (table,) = [t for t in root.iter("table") if "runs" in "".join(t.itertext())]
    rows = [["".join(cell.itertext()) for cell in row.iter("td")] for row in table.iter("tr")][1:]
    assert ["kernel", "100.00", "90.00", "130.00", "50"] in rows
    assert ["kernel, replayed", "98.70", "97.60", "99.90", "50"] in rows
    assert not [row for row in rows if row[0] == "eager, replayed"]  # which was not timed


def test_several_sets_of_shapes_are_told_apart():
    facts = full()
    second = shape(kernel=timing(20_000.0), eager=timing(50_000.0), compiled=timing(30_000.0))
    second.inputs = [class_schema.TensorSpec("x", [4096, 4096], "float32")]
    facts.measurement.shapes.append(second)
    said = text(page(facts))
    assert "x float32[4096, 4096] kernel 20000.00" in said and "x float32[8, 32] kernel 100.00" in said
    assert "20.0 ms" in said and "100.0 µs" in said
    assert "geometric mean of 2 sets of shapes" in said and "2.40× eager" in said  # the root of 2.31 × 2.5


def _lengths(facts, title):
    """Of the bars of a chart: label → (share of the width, whisker from, to)."""
    root = tree(page(facts))
    (card,) = [s for s in root.iter("section") if s.find(".//h2").text == title]
    found = {}
    for row in card.iter("div"):
        bar = row.find("./div/svg/rect") if row.get("class") == "row" else None
        if bar is not None:
            whisker = row.find("./div/svg/line[@class='whisker']")
            ends = [whisker.get("x1"), whisker.get("x2")] if whisker is not None else []
            label = row.find("./span").text
            found[label] = [float(s.removesuffix("%")) for s in (bar.get("width"), *ends)]
    return found


def test_bars_are_as_long_as_the_times():
    bars = _lengths(full(), "Time of one call")
    scale = 100 / (1.02 * 231.0 * 1.1)
    assert bars["kernel"] == pytest.approx([100 * scale, 90 * scale, 130 * scale], abs=0.01)
    assert bars["eager"][0] / bars["torch.compile"][0] == pytest.approx(231 / 124, rel=1e-3)


def test_without_products_the_bandwidth_is_the_measure():
    facts = full()
    bars = _lengths(facts, "Against what the device can do")
    assert bars["kernel"][0] / bars["eager"][0] == pytest.approx(2.31, rel=1e-3)
    assert "80.0 % 2.00 TB/s" in text(page(facts))  # 200 MB in 100 µs, of 2.5 TB/s


def test_with_products_there_is_a_roofline():
    facts = full(shape(flops=4_000_000_000))  # 20 FLOPs a byte: memory is the limit, at 50 TFLOP/s
    root = tree(page(facts))
    (plane,) = [s for s in root.iter("svg") if s.get("class") == "plane"]
    assert plane.find("title").text == (
        "Roofline: kernel: 40.0 TFLOP/s, 80.0 %; torch.compile: 32.3 TFLOP/s, 64.5 %; eager: 17.3 TFLOP/s, 34.6 %"
    )
    labels = [t for t in plane.iter("text") if t.get("class", "").startswith("said ")]
    assert len(labels) == 3
    # A marker is as high as its rate on the axis of decades: a factor of two is the same way everywhere.
    heights = {"kernel": float(plane.find("circle[@class='bar kernel']").get("cy"))}
    heights["compiled"] = float(plane.find("circle[@class='ring compiled']").get("cy"))
    heights["eager"] = float(plane.find("svg").get("y"))
    down = math.log(124 / 100) / math.log(231 / 100)
    assert (heights["compiled"] - heights["kernel"]) / (heights["eager"] - heights["kernel"]) == pytest.approx(
        down, rel=0.01
    )
    assert "where memory is the limit (50.0 TFLOP/s)" in text(page(facts))


def test_labels_of_equal_points_do_not_lie_on_each_other():
    same = timing(100.0)
    facts = full(shape(flops=4_000_000_000, eager=same, compiled=same, kernel=same))
    plane = next(s for s in tree(page(facts)).iter("svg") if s.get("class") == "plane")
    heights = sorted(float(t.get("y")) for t in plane.iter("text") if t.get("class", "").startswith("said "))
    assert heights[1] - heights[0] >= 19 and heights[2] - heights[1] >= 19


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"compiled": None}, "Not measured: torch.compile (it did not finish)."),
        ({"bytes": None}, "No roofline: how many bytes a call has to move cannot be told from the shapes"),
        ({"flops": None}, "How many operations a call needs is not known"),
        ({"kernel": None}, "Not measured: the kernel."),
    ],
)
def test_what_was_not_measured_says_why(change, words):
    measured = shape()
    for name, value in change.items():
        setattr(measured, name, value)
    facts = full(measured)
    facts.measurement.compiled_missing = "torch.compile: it did not finish"
    said = text(page(facts))
    assert words in said and said.lower().count("not measured") == words.lower().count("not measured")
    tree_of = tree(page(facts))
    assert all(
        tile.find("span[@class='figure']") is not None for tile in tree_of.iter("div") if tile.get("class") == "tile"
    )


def test_without_a_gpu_the_reason_is_given_once_for_all():
    facts = full()
    facts.measurement = schema.Measurement(missing="no CUDA GPU here: torch is built without CUDA")
    facts.verdict.mode, facts.device = "interpreter", schema.Device("Triton interpreter (CPU)", "interpreter")
    facts.verdict.limits = ["races between programs", "time (no CUDA GPU here)"]
    for validated in facts.report.candidates:
        validated.measurement = facts.measurement
    for source in facts.report.sources:
        source.best = None
    said = text(page(facts))
    assert "✓ Correct under Triton’s interpreter; not timed (no CUDA GPU here: torch is built without CUDA)" in said
    assert "0.00" not in said and "Speed" not in said and "roofline" not in said
    assert "not measured" not in said.lower() and said.count("no CUDA GPU here") == said.count("not timed") == 1
    assert "1 thing could not be checked" in said and "races between programs" in said


def cards(facts):
    """The titles of the cards of a page, each of which holds something."""
    found = {}
    for card in tree(page(facts)).iter("section"):
        title = card.find(".//h2").text
        found[title] = "".join(card.itertext()).removeprefix(title).strip()
    assert all(found.values()), f"an empty card: {found}"
    return set(found)


def test_what_was_not_recorded_has_no_card():
    """A verdict of an earlier session, or one of a kernel that crashed: figures, and no empty places for what is not there."""
    assert {"Candidates", "Compiled kernels", "Device", "Exactness", "Example"} <= cards(full())
    facts = Facts("Norm", verdict=schema.Verdict("crashed", "SIGSEGV"))
    assert cards(facts) == set()
    said = text(page(facts))
    assert "not measured" not in said.lower() and "Not recorded" not in said and "No check" not in said
    facts.verdict = schema.Verdict("wrong", "off", error=0.5, checks=[schema.Check("seeds", False, "off")])
    assert cards(facts) == {"Exactness"}


def test_a_picture_has_several_points():
    def pictures(facts):
        return len([one for one in tree(page(facts)).iter("svg") if one.get("role") == "img"])

    facts = Facts("Norm", verdict=schema.Verdict("ok", error=1e-7, eager_error=2e-7))
    assert pictures(facts) == 2  # a row each
    facts.verdict.eager_error = None
    assert pictures(facts) == 0 and "1.0e-07" in text(page(facts))
    others = [full(), Facts("Other")]
    assert "Speed over eager; the line is eager’s own." not in text(pages(others))
    assert "Speed over eager; the line is eager’s own." in text(pages([full(), full()]))


def test_source_lines_have_the_numbers_of_their_files():
    root = tree(page(full()))
    lines = [(line.get("data-n"), "".join(line.itertext())) for line in root.iter("span") if line.get("data-n")]
    assert ("9", "        return x / 2  # halves\n") in lines
    assert ("35", "@triton.jit\n") in lines
    marked = [e for e in root.iter("span") if "marked" in e.get("class", "").split()]
    assert [(e.get("data-n"), "".join(e.itertext())) for e in marked] == [("2", "nothing()\n")]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))


def test_it_loads_and_runs_nothing_and_the_hash_is_of_its_style():
    whole = page(full())
    tags = _Tags()
    tags.feed(whole)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in tags.seen}
    for _, attributes in tags.seen:
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)
        assert not {"src", "href", "action"} & attributes.keys()
    (policy,) = [a["content"] for t, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy"]
    (style,) = re.findall("<style>(.*?)</style>", whole, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style and "@import" not in style


def test_every_picture_has_a_title_or_is_hidden():
    for picture in tree(page(full(shape(flops=4_000_000_000)))).iter("svg"):
        if picture.get("role") == "img":
            assert picture.find("title").text
        else:
            assert picture.get("aria-hidden") == "true" or picture.get("class") == "mark"


def test_several_reports_have_an_index():
    second = copy.deepcopy(full())
    second.class_name = "Other"
    whole = pages([full(), second, Facts("Third", error="No example inputs.")])
    root = tree(whole)
    targets = [a.get("href").removeprefix("#") for a in root.iter("a")]
    assert targets == [article.get("id") for article in root.iter("article")] and len(set(targets)) == 3
    assert "2 of 3 are correct." in text(whole) and "✗ no kernel" in text(whole)


def test_the_measured_samples():
    """Real figures: every median in the file is in the page's table as it was measured."""
    reports = json.loads((RESULTS / "samples-nvidia-h100-80gb-hbm3.json").read_text())
    assert len(reports) > 10
    facts = [Facts.of_report(schema.from_json(schema.Report, report)) for report in reports]
    said = text(pages(facts))
    for one in facts:
        assert one.class_name in text(page(one))
        for measured in one.measurement.shapes if one.measurement else []:
            for name in ("eager", "compiled", "kernel", "kernel_graph", "eager_graph"):
                time = getattr(measured, name)
                assert time is None or f"{time.median:.2f} {time.low:.2f} {time.high:.2f} {time.runs}" in said


def test_the_device_says_what_it_can_do():
    assert "2.50 TB/s" in text(page(full())) and DEVICE.name in text(page(full()))


def test_the_kernels_that_take_the_time_are_named_the_longest_first():
    measured = shape()
    measured.spans = {"cast": 2.0, "row_kernel": 40.3}
    assert "the GPU runs row_kernel 40.3 µs, cast 2.0 µs, by the profiler" in text(page(full(measured)))


def test_other_modes_and_kept_times_are_named():
    measured = shape()
    measured.compiled_modes = {"max-autotune": timing(110.0)}
    measured.kept = {"default": "stand-in: measured on another H100"}
    said = text(page(full(measured)))
    assert "… max-autotune" in said and "110.0 µs 1.10× the kernel’s" in said
    assert "torch.compile max-autotune 110.00" in said
    assert "torch.compile: stand-in: measured on another H100." in said


def test_a_speedup_over_recorded_shapes_says_so():
    facts = full()
    assert "recorded" not in text(page(facts))
    second = shape(kernel=timing(20.0), eager=timing(50.0), compiled=None)
    second.inputs, second.calls = [class_schema.TensorSpec("x", [4, 32], "float32")], 12000
    third = shape(kernel=timing(10.0), eager=timing(11.0), compiled=None)
    third.inputs, third.calls = [class_schema.TensorSpec("x", [2, 32], "float32")], 6000
    measurement = facts.measurement
    measurement.shapes += [second, third]
    measurement.recorded = schema.RecordedMix("train.py", 0.97, ["float32[9, 32]: not enough memory"])
    said = text(page(facts))
    # 12,000 × 50 + 6,000 × 11 against 12,000 × 20 + 6,000 × 10
    mix = "over 2 recorded shapes of train.py, weighted by calls"
    assert f"2.22× eager {mix} · 1.24× torch.compile at the example’s" in said
    assert f"{mix} (97.0 % of its time there)" in said and "geometric mean" not in said
    assert "x float32[4, 32] · 12,000 calls in train.py" in said
    assert "Recorded from train.py and not timed: float32[9, 32]: not enough memory." in said
    assert f"Times are those at the example's shapes; × eager is {mix}." in said


def test_schedules_say_their_time_over_the_recorded_shapes():
    facts = full()
    facts.report.tried = [
        schema.Tried("", timing=timing(100.0), mixed=14.0),
        schema.Tried("num_warps=8", timing=timing(110.0), mixed=12.0, fastest=True),
    ]
    said = text(page(facts))
    assert "over the recorded shapes" in said and "num_warps=8 110.0 µs 12.0 µs" in said

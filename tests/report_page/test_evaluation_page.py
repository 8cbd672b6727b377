"""The page of a suite: its figures, its picture, its links, and nothing of anybody's text as a tag."""

import dataclasses
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.errors import ReportNotWritten
from kernel_lsp.evaluation.scores import score
from kernel_lsp.report_page.distribution import Point, distribution
from kernel_lsp.report_page.evaluation import facts_of, file_names, overview, write
from tests.evaluation.made import not_lowered, problem, record, report, suite, validated

from .facts import text, tree
from .test_report_hostile import ATTRIBUTES, HOSTILE, TAGS


def written(tmp_path, records, **more):
    path = tmp_path / "h100 run.html"
    write(path, score(records), records, **more)
    return path, path.read_text("utf-8")


def bars(whole):
    """(colour, top, height) of every bar, in percent."""
    found = [e for e in tree(whole).iter("rect") if (e.get("class") or "").startswith("bar ")]
    return [(e.get("class"), float(e.get("y")[:-1]), float(e.get("height")[:-1])) for e in found]


def test_the_figures_are_on_the_page(tmp_path):
    _, whole = written(tmp_path, suite())
    said = text(whole)
    assert "4 of 6 are correct, 2.38× eager, 2.10× torch.compile." in said
    assert "2.38× (4) 2.00× (3) 1.00× (2)" in said
    assert "level 1 4 4 (100 %) 3 (75.0 %)" in said
    assert "level2/2_Op Model cannot be written in Triton yet" in said
    assert "conv2d 1" in said and "Greatest use of GPU memory: median 2.00 GiB, worst 3.00 GiB" in said
    assert "3 of 4 correct and timed problems are faster" in said


def test_bars_are_sorted_and_those_below_one_have_another_colour(tmp_path):
    _, whole = written(tmp_path, suite())
    eager = bars(whole)[:4]
    assert [kind for kind, _, _ in eager] == ["bar kernel"] * 3 + ["bar slower"]
    # 8×, 4×, 2× and 0.5× on a log scale: lengths as 3 : 2 : 1 : 1, the last one downwards from 1×.
    lengths = [height / eager[2][2] for _, _, height in eager]
    assert lengths == pytest.approx([3, 2, 1, 1], rel=0.01)
    assert eager[3][1] == pytest.approx(eager[0][1] + eager[0][2], abs=0.02)


def test_every_link_leads_to_a_page_that_is_there(tmp_path):
    records = suite()
    path, whole = written(tmp_path, records)
    links = {e.get("href") for e in tree(whole).iter("a") if e.get("href")}
    assert len(links) == 5  # the one that was not lowered has no report
    for link in links:
        assert link.startswith("h100%20run-reports/")
        page = (path.parent / unquote(link)).read_text("utf-8")
        assert tree(page) is not None
    pointed = [e.get("href") for e in tree(whole).iter("a") if e.find("rect") is not None]
    assert len(pointed) == 4 + 2  # over eager, and over torch.compile


def test_the_caller_gives_the_facts(tmp_path):
    def facts_for(one):
        facts = facts_of(one)
        facts.module_source = "class Model: ..."
        return facts

    path, _ = written(tmp_path, suite(), facts_for=facts_for)
    page = (tmp_path / "h100 run-reports" / "level1-1_Op.html").read_text("utf-8")
    assert "class Model" in text(page) and text(page).startswith("Triton kernel for 1_Op")
    assert path.exists()


def test_a_record_without_a_report_has_facts_too():
    facts = facts_of(not_lowered(problem(2)))
    assert facts.class_name == "2_Op" and "cannot be written in Triton" in facts.error


def test_hostile_names_and_reasons_stay_text(tmp_path):
    hostile = dataclasses.replace(problem(1), id=HOSTILE, name=HOSTILE, path=HOSTILE, suite=HOSTILE, trait=HOSTILE)
    about = report(validated(200, default=110), seconds={HOSTILE: 1.0})
    about.candidates[0].measurement.shapes[0].kept = {"default": HOSTILE}
    about.candidates[0].measurement.shapes[0].spans = {HOSTILE: 1.0}
    about.candidates[0].candidate.kept = {HOSTILE: 1}
    versions = {"device": HOSTILE, HOSTILE: HOSTILE}
    records = [
        record(hostile, about, versions=versions, machine=HOSTILE, at=HOSTILE, samples={HOSTILE: [2, 1]}),
        record(dataclasses.replace(hostile, id=HOSTILE + "2"), status=HOSTILE, reason=HOSTILE, versions=versions),
    ]
    path, whole = written(tmp_path, records)
    for element in tree(whole).iter():
        assert element.tag in TAGS and set(element.attrib) <= ATTRIBUTES
        assert re.fullmatch(r"(#.*|h100%20run-reports/[A-Za-z0-9._-]+\.html)", element.get("href", "#"))
    assert "<script>alert(1)</script>" in text(whole)
    whole.encode("utf-8")
    pages = list((path.parent / "h100 run-reports").iterdir())
    assert len(pages) == 1 and "<script>alert(1)</script>" in text(pages[0].read_text("utf-8"))


def test_nothing_is_loaded_or_run(tmp_path):
    _, whole = written(tmp_path, suite())
    assert "default-src &#x27;none&#x27;" in whole
    assert not {"script", "img", "link", "iframe", "object"} & {e.tag for e in tree(whole).iter()}


@given(st.lists(st.text(max_size=20), max_size=8, unique=True))
def test_file_names_are_plain_and_differ(ids):
    records = [record(dataclasses.replace(problem(1), id=one)) for one in [*ids, "../../etc/passwd", "A/b", "a-B"]]
    names = list(file_names(records).values())
    assert len({name.lower() for name in names}) == len({(r.problem.id) for r in records})
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.html", name) and ".." not in name.removesuffix(".html")[:2]


def test_modes_have_pages_of_their_own(tmp_path):
    both = [record(problem(1), report(validated(200)), mode=mode) for mode in ("eval", "train")]
    _, whole = written(tmp_path, both)
    assert sorted(file.name for file in (tmp_path / "h100 run-reports").iterdir()) == [
        "level1-1_Op-eval.html",
        "level1-1_Op-train.html",
    ]
    assert "Speedup over eager, train mode" in text(whole)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportNotWritten):
        write(tmp_path / "file" / "page.html", score(suite()), suite())


def test_nothing_run(tmp_path):
    path, whole = written(tmp_path, [])
    assert "No problem was run." in text(whole)
    assert list(path.parent.iterdir()) == [path]


def test_a_page_without_links_has_every_problem():
    assert "level1/4_Op" in text(overview(score(suite()), {}))


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=300))
def test_any_speedups_make_a_picture(ratios):
    picture = distribution([Point(f"p{i}", ratio) for i, ratio in enumerate(ratios)], "eager")
    for element in ElementTree.fromstring(picture).iter():
        for value in element.attrib.values():
            if value.endswith("%"):
                assert -0.5 <= float(value[:-1]) <= 100.5
    assert picture.count('class="grid"') <= 10

"""Names, reasons, sources and answers are anybody's text: none of it becomes a tag, and no number breaks a page."""

import dataclasses
import types
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_lsp.report_page import Facts, page, pages
from kernel_lsp.report_page.code import listing
from kernel_lsp.report_page.html import el

from .facts import full, text, tree

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><style>*{}</style></pre></svg><!-- ]]> &amp; \x00\x1b \ud800"
TAGS = set(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "article",
        "section",
        "div",
        "span",
        "p",
        "h1",
        "h2",
        "h3",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "pre",
        "code",
        "g",
        "i",
        "b",
        "strong",
        "a",
        "svg",
        "rect",
        "line",
        "circle",
        "text",
        "desc",
    ]
)
ATTRIBUTES = set(
    [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "role",
        "href",
        "colspan",
        "open",
        "tabindex",
        "data-n",
        "aria-hidden",
        "width",
        "height",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "cx",
        "cy",
        "r",
        "rx",
        "dx",
        "dy",
        "text-anchor",
    ]
)


def everywhere(record, words):
    """A copy of a record with ``words`` in every text of it."""
    if isinstance(record, str):
        return words
    if isinstance(record, list):
        return [everywhere(item, words) for item in record]
    if isinstance(record, dict):
        return {words + str(i): everywhere(item, words) for i, item in enumerate(record.values())}
    if dataclasses.is_dataclass(record):
        return dataclasses.replace(
            record, **{f.name: everywhere(getattr(record, f.name), words) for f in dataclasses.fields(record)}
        )
    return record


def innocent(whole):
    for element in tree(whole).iter():
        assert element.tag in TAGS, element.tag
        assert set(element.attrib) <= ATTRIBUTES, element.attrib
        assert element.get("href", "#").startswith("#")
        assert not any(word in value for value in element.attrib.values() for word in ("nan", "inf%", "e+")), (
            element.attrib
        )


def test_hostile_text_in_every_place_stays_text():
    facts = everywhere(full(), HOSTILE)
    whole = page(facts)
    innocent(whole)
    assert "<script" not in whole and "onerror" not in {name for e in tree(whole).iter() for name in e.attrib}
    assert text(whole).count("<script>alert(1)</script>") > 30
    whole.encode("utf-8")  # no lone surrogate
    innocent(pages([facts, full(), Facts(HOSTILE, error=HOSTILE, running=HOSTILE)]))


def test_directions_of_writing_are_shown_and_not_followed():
    said = text(page(Facts("Norm", kernel_source="if access != 'user\u202e \u2066# admin':\n    pass\n")))
    assert "\u202e" not in said and "<U+202E>" in said and "<U+2066>" in said


def records(kind):
    """Any record of a type, every field given."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([st.none() if k is type(None) else records(k) for k in inside])
    if origin is list:
        return st.lists(records(inside[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(records(inside[0]), records(inside[1]), max_size=3)
    if origin is typing.Literal:
        return st.sampled_from(inside)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{f.name: records(hints[f.name]) for f in dataclasses.fields(kind)})
    if kind is str:
        return st.one_of(st.text(max_size=12), st.just("<b onclick='x'>&"))
    if kind is int:
        return st.integers(-(2**40), 2**63)
    if kind is typing.Any:
        return st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=12))
    return {float: st.floats(), bool: st.booleans()}[kind]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(records(Facts))
def test_any_facts_make_a_page(facts):
    if facts.report is not None and facts.report.chosen is not None:
        facts.report.chosen = 0
    innocent(page(facts))
    innocent(pages([facts, facts]))


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_a_listing_holds_the_source(source):
    shown = "".join(tree(f"<!DOCTYPE html>\n{listing(source)}").itertext())
    expected = source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n") + "\n"
    assert len(shown.split("\n")) == len(expected.split("\n"))
    if expected.isascii() and expected.isprintable():
        assert shown == expected


@given(st.text(), st.text())
def test_an_element_holds_its_text_and_attributes(inside, attribute):
    whole = el("p", inside, class_=attribute)
    element = tree(f"<!DOCTYPE html>\n{whole}")
    assert list(element) == [] and list(element.attrib) == ["class"]


def test_only_markup_goes_in_unescaped():
    assert el("p", "<b>", el("b", "&")) == "<p>&lt;b&gt;<b>&amp;</b></p>"


@pytest.mark.parametrize("size", [200_001, 1])
def test_a_very_long_source_is_shown_without_colours(size):
    assert len("".join(tree(f"<!DOCTYPE html>\n{listing('x' * size)}").itertext())) == size + 1

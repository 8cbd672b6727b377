"""JUnit's XML, as most CI systems read it: one test case a kernel."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from kernel_lsp.checking.formats.places import shown
from kernel_lsp.checking.records import CANNOT_VALIDATE, Checked, Finding, Outcome

# XML 1.0, section 2.2: no character reference can stand for these either.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(outcome: Outcome) -> str:
    """The document. A finding that does not fail the run is in the test case's output."""
    cases = [_case(one, outcome.root) for one in outcome.checked]
    if outcome.error:
        cases.append(_element("testcase", classname="kernel-lsp", name="check"))
        cases[-1].append(_element("error", type=CANNOT_VALIDATE, message=outcome.error))
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(one.seconds or 0.0 for one in outcome.checked):.3f}",
    }
    suites = _element("testsuites", name="kernel-lsp", **counts)
    suite = _element("testsuite", name="kernel-lsp check", **counts)
    suites.append(suite)
    if outcome.not_measured:
        properties = _element("properties")
        for why in outcome.not_measured:
            properties.append(_element("property", name="regressions", value=f"not measured ({why})"))
        suite.append(properties)
    suite.extend(cases)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(one: Checked, root: Path) -> ElementTree.Element:
    path, line = one.place
    file = shown(path, root)
    case = _element(
        "testcase",
        classname=file.removesuffix(".py").replace("/", "."),
        name=one.class_name or one.kernel.name,
        file=file,
        line=str(line),
        time=f"{one.seconds or 0.0:.3f}",
    )
    failing = [finding for finding in one.findings if finding.fails]
    if failing:
        # One element alone: many readers take no second one.
        error = all(finding.code == CANNOT_VALIDATE for finding in failing)
        found = _element("error" if error else "failure", type=failing[0].code, message=failing[0].text)
        found.text = _lines(failing)
        case.append(found)
    others = [finding for finding in one.findings if not finding.fails]
    if others:
        said = _element("system-out")
        said.text = _lines(others)
        case.append(said)
    return case


def _lines(findings: list[Finding]) -> str:
    return _clean("\n".join(f"{finding.code}: {finding.text}" for finding in findings))


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(tag, {name: _clean(value) for name, value in attributes.items()})


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)

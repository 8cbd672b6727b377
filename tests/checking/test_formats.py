"""What other programs read: SARIF by the standard's rules, JUnit by a parser that is not ours, GitHub's commands."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import junitparser
import pytest

from kernel_lsp import errors, schema
from kernel_lsp.checking.findings import checked_of
from kernel_lsp.checking.formats import github, junit, sarif
from kernel_lsp.checking.records import DEFAULT_FAIL_ON, Checked, Outcome
from tests.checking.scratch import write_kernel, write_module

SARIF = json.loads(Path(__file__).with_name("sarif_2.1.0_reduced.schema.json").read_text())
STRANGE = 'off by 5 %,\nsee "a<b>": \x00\ud800 ]]> ::error::'


def report(status: str, reason: str = "", regression: str = "", kernel: float | None = None) -> schema.Report:
    timing = schema.Timing(kernel, kernel, kernel, 10) if kernel else None
    measurement = schema.Measurement([schema.ShapeMeasurement([], timing, None, timing)] if timing else [])
    measurement.missing = "" if timing else "no CUDA GPU here."
    validated = schema.Validated(
        schema.Candidate("", "synthesizer"), schema.Verdict(status, reason, line=3), measurement
    )
    return schema.Report(schema.Target("", "Scale"), candidates=[validated], regression=regression)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    write_module(tmp_path / "a, b%" / "масштаб.py", "Scale", "x * 0.5")
    return write_kernel(tmp_path / "a, b%" / "масштаб.py", "Scale")


def outcome_of(root: Path, *checked: Checked, **more: object) -> Outcome:
    return Outcome(root, list(checked), **more)  # type: ignore[arg-type]


@pytest.fixture
def outcome(tmp_path: Path, kernel: Path) -> Outcome:
    """One of each: wrong, slower, regressed, not validated, good."""
    reports = [report("wrong", STRANGE), report("slower", "2 µs against 1 µs of eager", kernel=2.0)]
    reports += [report("ok", regression="Slower than when last measured: 1.00× eager.", kernel=2.0)]
    checked = [checked_of(kernel, one, None, DEFAULT_FAIL_ON) for one in reports]
    checked.append(checked_of(kernel, None, errors.NoExampleInputs(class_name="Scale"), DEFAULT_FAIL_ON))
    return outcome_of(tmp_path, *checked, checked_of(kernel, report("ok"), None, DEFAULT_FAIL_ON))


def test_exit_status_follows_from_what_fails(outcome: Outcome, kernel: Path) -> None:
    wrong, _, regressed, cannot, good = outcome.checked
    assert [outcome_of(outcome.root, one).exit_status() for one in outcome.checked] == [1, 0, 1, 2, 0]
    assert outcome_of(outcome.root, wrong, cannot).exit_status() == 1
    assert outcome_of(outcome.root, good, error="no git").exit_status() == 2
    assert (regressed.regression is not None, regressed.not_measured) == (True, "")
    assert (good.regression, good.not_measured) == (None, "no CUDA GPU here")
    only_slower = checked_of(kernel, report("slower", kernel=2.0), None, ["slower"])
    still_wrong = checked_of(kernel, report("wrong"), None, ["slower"])
    assert outcome_of(outcome.root, only_slower).exit_status() == 1
    assert outcome_of(outcome.root, still_wrong).exit_status() == 0
    source = kernel.parent.parent / "масштаб.py"
    source.write_text(source.read_text().replace("0.5", "0.25"))
    for fail_on, status in ((DEFAULT_FAIL_ON, 0), (["stale"], 1)):
        stale = checked_of(kernel, report("ok"), None, fail_on)
        assert stale.stale and outcome_of(outcome.root, stale).exit_status() == status


def test_a_kernel_that_is_out_of_date_has_a_code_of_its_own_and_fails_as_a_wrong_one_does(kernel: Path) -> None:
    outdated = report("outdated", "Scale changed; generate it again (off by 5)")
    for fail_on, level in ((DEFAULT_FAIL_ON, "error"), (["stale"], "warning")):
        (finding,) = checked_of(kernel, outdated, None, fail_on).findings
        assert (finding.code, finding.level, finding.fails) == ("kernel-outdated", level, level == "error")
        assert finding.message == "ScaleTriton is out of date: Scale changed; generate it again (off by 5)."
        assert finding.action.startswith("Generate it again: kernel-lsp generate ")


def test_sarif(outcome: Outcome) -> None:
    log = json.loads(sarif.text(outcome).encode("utf-8", "backslashreplace"))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    found = [(result["ruleId"], result["level"]) for result in run["results"]]
    assert found == [
        ("kernel-wrong", "error"),
        ("kernel-slower", "note"),
        ("kernel-regressed", "error"),
        ("cannot-validate", "error"),
    ]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        artifact = location["physicalLocation"]["artifactLocation"]
        assert unquote(artifact["uri"]) == "a, b%/масштаб.py" and artifact["uri"].isascii()
        line = location["physicalLocation"]["region"]["startLine"]
        assert (outcome.root / unquote(artifact["uri"])).read_text().splitlines()[line - 1].startswith("class Scale")
    kernel = run["results"][0]["relatedLocations"][0]["physicalLocation"]
    text = (outcome.root / unquote(kernel["artifactLocation"]["uri"])).read_text()
    assert text.splitlines()[kernel["region"]["startLine"] - 1] == "import triton"  # line 3 of the body
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (1, True)
    assert "Regressions: not measured (no CUDA GPU here)." in json.dumps(invocation)

    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SARIF).validate(log)


def test_sarif_of_a_run_that_did_not_begin(tmp_path: Path) -> None:
    log = json.loads(sarif.text(outcome_of(tmp_path, error="There is no file.")))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    assert log["runs"][0]["results"] == [] and not log["runs"][0]["invocations"][0]["executionSuccessful"]


def test_junit(outcome: Outcome, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(junit.text(outcome), "utf-8")
    parsed = junitparser.JUnitXml.fromfile(str(file))
    (suite,) = parsed
    assert (suite.tests, suite.failures, suite.errors) == (5, 2, 1)
    assert [one.value for one in suite.properties()] == ["not measured (no CUDA GPU here)"]
    wrong, slower, regressed, cannot, good = suite
    assert (wrong.classname, wrong.name) == ("a, b%.масштаб", "Scale")
    assert [type(case.result[0]) for case in (wrong, regressed)] == [junitparser.Failure, junitparser.Failure]
    assert wrong.result[0].type == "kernel-wrong" and 'see "a<b>": \ufffd\ufffd ]]>' in wrong.result[0].text
    assert isinstance(cannot.result[0], junitparser.Error) and "No example inputs for Scale" in cannot.result[0].message
    assert slower.is_passed and "kernel-slower" in slower.system_out
    assert good.is_passed and good.system_out is None


def test_github(outcome: Outcome) -> None:
    outcome.error = "100 %\r\nno"
    lines = github.text(outcome).splitlines()
    assert len(lines) == 6  # whatever a message holds, a finding is one line
    place = "file=a%2C b%25/масштаб.py,line=5,title="
    assert lines[0].startswith(f"::error {place}kernel-wrong::ScaleTriton (wrong): off by 5 %25,%0Asee")
    assert lines[1].startswith(f"::notice {place}kernel-slower::")
    assert lines[4] == "::notice title=kernel-lsp::Regressions: not measured (no CUDA GPU here)."
    assert lines[5] == "::error title=kernel-lsp::100 %25%0D%0Ano"
    assert all(re.match(r"::(error|warning|notice) \S", line) for line in lines)

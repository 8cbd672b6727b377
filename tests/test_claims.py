"""What a kernel file says of itself: short, read back, and never more than text from somebody."""

import dataclasses
import re

import pytest

from kernel_lsp import claims, class_schema, kernel_file, schema, speedup
from kernel_lsp.jobs import header
from kernel_lsp.recording.calls_left_to_eager import why_outside
from tests.recording.made import shape, tensor

H100 = schema.Device("NVIDIA H100 80GB HBM3", "cuda", "9.0", 2.5e12, 1e14, "3.12.3", "2.11.0", "3.6.0", "580.1")


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, 0.98 * median, 1.02 * median, 50)


def measured(count: int = 1) -> schema.Measurement:
    inputs = [
        class_schema.TensorSpec(f"input{i}", [8, 1024, 4096], "float32", dynamic=["s0", "s1", None])
        for i in range(count)
    ]
    shape = schema.ShapeMeasurement(inputs, eager=timing(376.3), compiled=timing(120.0), kernel=timing(91.6))
    shape.roofline_share = 0.91234
    return schema.Measurement([shape], H100, measured_at="2026-01-02T03:04:05+00:00")


def verdict() -> schema.Verdict:
    checks = [schema.Check(f"check {i}", i != 3, "x 2×4×4096: relative error 9.7e-08") for i in range(40)]
    limits = [f"the {i}th thing that was not checked (there was no time for it)" for i in range(20)]
    return schema.Verdict(
        "slower", "correct, but " + "very " * 80 + "slow", 7, "gpu", checks, 1.23456e-7, 2e-7, "fp32", 3, limits=limits
    )


def report(count: int) -> tuple[schema.Report, schema.Validated]:
    found = measured(count)
    sizes = {f"s{i}": [2, 2**31] for i in range(count)}
    specimen = class_schema.Specimen(
        "A", "a", "x=" + "1" * 300, "get_inputs_A()", found.shapes[0].inputs, dynamic=sizes, training=True
    )
    specimen.arguments = [f"flag{i}=True" for i in range(count)]
    candidate = schema.Candidate("pass\n", "openai", "n" * 300, variant="v" * 300, pinned=False)
    validated = schema.Validated(candidate, verdict(), found)
    return schema.Report(schema.Target("", "A", fingerprint="sha256:1"), specimen, device=H100), validated


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_header_has_at_most_25_lines(count, elsewhere):
    made, validated = report(count)
    made.device = schema.Device("Triton interpreter (CPU)", "interpreter") if elsewhere else H100
    validated.candidate.pinned, validated.candidate.precision = elsewhere, "tf32"
    text = kernel_file.assemble(header.build("a.py::A", made.target, made, validated), "pass\n")
    parsed = kernel_file.parse(text)
    assert parsed.body_line <= 25 and parsed.body == "pass\n" and not parsed.edited
    assert parsed.fingerprint == "sha256:1"
    assert "input0: float32[8, 1024, 4096]" in text or "input0: float32[s0, s1, 4096]" in text
    assert 'envelope.arguments = ["flag0=True"' in text
    cut = count == 40 or (count == 3 and elsewhere)
    assert bool(re.search(r"and \d+ more", text)) == cut  # what was left out is counted
    assert [(s.dtype, s.shape) for s in parsed.claim.measurement.shapes[0].inputs] == [
        ("float32", [8, 1024, 4096])
    ] * count
    last = text.splitlines()[parsed.body_line - 2]
    assert "the validation report" in last and "kernel-lsp history a.py::A" in last


@pytest.mark.parametrize("width", range(1, 140, 6))
@pytest.mark.parametrize("count", [2, 5, 60])
def test_the_longest_header_has_25_lines_whatever_its_names_are(width, count):
    made, validated = report(count)
    name = ("name" * 40)[:width]
    for number, spec in enumerate(made.specimen.inputs):
        spec.name, spec.dynamic = f"{name}{number}", [f"{name}_s{number}", None, None]
    made.specimen.dynamic = {f"{name}_s{number}": [2, 2**31] for number in range(count)}
    validated.candidate.precision, validated.candidate.pinned = "half", False
    made.device = schema.Device("Triton interpreter (CPU)", "interpreter")
    built = header.build("model/layers.py::A", made.target, made, validated)
    again = header.renewed(built, header.findings("sha256:2", made, validated, validated.measurement))
    for one in (built, again):
        parsed = kernel_file.parse(kernel_file.assemble(one, "pass\n"))
        assert 20 < parsed.body_line <= 25
        assert {"class", "verdict", "validated", "measured", "microseconds", "measured-on"} <= set(parsed.header)
        for key in ("inputs", "sizes"):
            items = parsed.header["envelope"][key]
            counted = re.fullmatch(r"and (\d+) more", items[-1])
            assert len(items) == count or len(items) - 1 + int(counted[1]) == count


@pytest.mark.parametrize("tight", [False, True])
def test_a_further_envelope_is_listed_whole_or_counted(tight):
    """A size range that is cut in its digits would say that calls are outside which the kernel runs for."""
    for width in range(1, 200):
        made, validated = report(60 if tight else 1)
        given = class_schema.TensorSpec("x" * width, [3000, 16], "bfloat16", dynamic=["s0", None])
        further = dataclasses.replace(made.specimen, inputs=[given], arguments=[], dynamic={"s0": [2, 4096]})
        made.further = [further] * 3
        built = header.build("a.py::A", made.target, made, validated)
        assert len(kernel_file.header_lines(built)) <= 25
        listed = built["envelope"]["further"]
        whole = f"{given.name}: bfloat16[s0, 16]; s0: 2 to 4096, 3000 in the example"
        counted = re.fullmatch(r"and (\d+) more", listed[-1])
        assert set(listed[:-1] if counted else listed) <= {whole}
        assert len(listed) - 1 + int(counted[1]) == 3 if counted else len(listed) == 3
        built["envelope"]["inputs"] = ["x: float32[s0, 16]"]
        assert why_outside(built, shape(tensor("bfloat16[3000, 16]"))) == ""


def test_the_long_header_of_an_earlier_version_is_shortened_by_the_next_validation():
    made, validated = report(1)
    long = {
        "source": "a.py::A",
        "class": "A",
        "note": "n" * 1000,
        "version": "0.0.1",
        "envelope": {
            "inputs": [f"input{number}: float32[s{number}, 1024]" for number in range(90)],
            "sizes": [f"s{number}: 2 or more, 1024 in the example" for number in range(90)],
        },
        "verdict": schema.to_json(verdict()),
        "measurement": schema.to_json(measured()),
    } | {f"of-another-version-{number}": number for number in range(9)}
    old = kernel_file.parse(kernel_file.assemble(long, "pass\n"))
    assert old.body_line > 100 and old.claim.verdict.status == "slower"
    found = header.findings("sha256:1", made, validated, validated.measurement)
    new = kernel_file.parse(kernel_file.assemble(header.renewed(old.header, found), old.body))
    assert new.body_line <= 25 and new.body == old.body
    assert new.header["envelope"]["inputs"][0] == "input0: float32[s0, 1024]"
    assert new.claim.timed and new.class_name == "A"


def test_a_lower_precision_is_part_of_the_claim():
    lines = claims.lines(verdict(), measured(), H100, "0.1.0", "2026-01-02T03:04:05Z")
    claim = kernel_file.parse(kernel_file.assemble({"class": "A", "precision": "tf32"} | lines, "")).claim
    assert claim.verdict.held_to == "tf32" and claims.figure(claim) == "4.11× eager · TF32"
    untimed = claims.Claim(schema.Verdict("ok", held_to="half"))
    assert claims.figure(untimed) == "correct at half precision, not timed"
    other = kernel_file.parse(kernel_file.assemble({"class": "A", "precision": "none at all"} | lines, ""))
    assert other.precision == other.claim.verdict.held_to == "strict"


def test_that_packed_weights_are_kept_is_part_of_the_header_and_of_the_claim():
    made, validated = report(1)
    text = kernel_file.assemble(header.build("a.py::A", made.target, made, validated), "pass\n")
    assert "packed" not in text and not kernel_file.parse(text).claim.verdict.keeps_packed_weights
    validated.verdict.keeps_packed_weights = True
    text = kernel_file.assemble(header.build("a.py::A", made.target, made, validated), "pass\n")
    assert "keeps_packed_weights = true}" in text
    claim = kernel_file.parse(text).claim
    assert claim.verdict.keeps_packed_weights and claims.figure(claim) == "4.11× eager · packed weights kept"
    untimed = claims.Claim(schema.Verdict("ok", keeps_packed_weights=True))
    assert claims.figure(untimed) == "correct, not timed · packed weights kept"


def test_what_is_written_is_read_back():
    lines = claims.lines(verdict(), measured(), H100, "0.1.0", "2026-01-02T03:04:05Z")
    claim = kernel_file.parse(kernel_file.assemble({"class": "A"} | lines, "")).claim
    assert (claim.verdict.status, claim.verdict.mode, claim.verdict.line) == ("slower", "gpu", 7)
    assert claim.verdict.error == 1.23e-7 and claim.verdict.reason.startswith("correct, but very")
    (shape,) = claim.measurement.shapes
    assert (shape.eager, shape.kernel) == (timing(376.3), timing(91.6)) or abs(shape.eager.low - 0.98 * 376.3) < 0.01
    assert claim.measurement.device.name == claim.device.name == H100.name and claim.timed
    assert claims.said(claim) == "says it was validated on NVIDIA H100 80GB HBM3 by kernel-lsp 0.1.0 (4.11× eager)"
    assert "39" in str(lines["verdict"]["passed"]) and lines["verdict"]["failed"] == 1
    assert (
        lines["not-checked"].startswith("the 0th thing that was not checked; the 1th")
        and "see the report" in lines["not-checked"]
    )


def test_times_of_another_device_name_it():
    cpu = schema.Device("Triton interpreter (CPU)", "interpreter", torch="2.13.0", triton="3.7.1")
    lines = claims.lines(schema.Verdict("ok", mode="interpreter"), measured(), cpu, "0.1.0", "")
    claim = claims.read(lines)
    assert (claim.device.name, claim.measurement.device.name) == (cpu.name, H100.name)
    assert claims.timed_elsewhere(claim) == f"The file says 4.11× eager on {H100.name}; not measured here."


def test_findings_take_the_place_of_those_of_earlier_versions_and_the_moment_alone_changes_nothing():
    made, validated = report(1)
    long = {
        "source": "a.py::A",
        "written": "2026",
        "verdict": {"status": "wrong", "checks": []},
        "device": {"name": "x", "kind": "cuda"},
        "measurement": {"missing": "y"},
    }
    found = header.findings("sha256:1", made, validated, validated.measurement)
    new = header.renewed(long, found)
    assert not {"written", "device", "measurement"} & set(new) and new["verdict"]["status"] == "slower"
    read = kernel_file.parse(kernel_file.assemble(new, "")).header
    later = found | {"validated": found["validated"] | {"at": "2027-01-01T00:00:00Z"}}
    assert header.renewed(read, later) is read
    assert header.renewed(read, found | {"fingerprint": "sha256:2"})["fingerprint"] == "sha256:2"


@pytest.mark.parametrize(
    "entries",
    [
        {"verdict": "ok"},
        {"verdict": {"status": ["ok"]}},
        {"verdict": {"reason": "no status"}},
        {"verdict": {"status": "ok"}, "measured": {}, "microseconds": {"kernel": [0, 0, 0, 0], "eager": [1, 1, 1, 1]}},
        {
            "verdict": {"status": "ok"},
            "measured": {},
            "microseconds": {"kernel": ["9", 1, 1, 1], "eager": [1, 1, 1, 1]},
        },
        {"verdict": {"status": "ok"}, "measured": {"roofline": "x"}, "microseconds": {"kernel": [1, 1, 1, 1]}},
        {"verdict": {"status": "ok"}, "measured": 3, "microseconds": [], "validated": "yes", "not-checked": {}},
        {
            "verdict": {"status": "ok"},
            "measurement": {"shapes": [{"inputs": [], "kernel": {"median": "x", "low": 1, "high": 1, "runs": 1}}]},
        },
        {"verdict": {"status": "ok"}, "measurement": {"shapes": 7}},
        {"verdict": {"status": "ok"}, "validated": {"on": "x" * 500, "by": "[click](https://x)\x1b[31m<b>"}},
    ],
)
def test_a_header_that_makes_no_sense_is_a_small_claim_or_none(entries):
    claim = kernel_file.parse(kernel_file.assemble(entries, "")).claim
    if claim is not None:
        words = claims.said(claim)
        assert len(words) < 250 and "correct, not timed" in words
        assert not set("[]<>\x1b*`|") & set(words)


def test_a_header_has_the_error_on_the_example_inputs_beside_the_largest_where_these_differ():
    largest = schema.Verdict("ok", error=1.1, eager_error=1.2, error_check="tiny values", example_error=2e-7)
    largest.example_eager_error = 3e-7
    line = claims.lines(largest, None, None, "0.1.0", "")["verdict"]
    assert (line["error_check"], line["example_error"], line["example_eager_error"]) == ("tiny values", 2e-7, 3e-7)
    found = claims.read({"verdict": {key: value for key, value in line.items() if value is not None}})
    assert found.verdict.error == 1.1 and speedup.errors_on_the_example(found.verdict) == (2e-7, 3e-7)
    of_example = schema.Verdict("ok", error=2e-7, eager_error=3e-7, error_check=schema.EXAMPLE, example_error=2e-7)
    line = claims.lines(of_example, None, None, "0.1.0", "")["verdict"]
    assert line["error_check"] is None and line["example_error"] is None


def test_what_was_not_checked_is_said_once_without_the_order_in_memory():
    at = "the strides of its output for inputs in another memory layout"
    limits = [
        f"{at} ({name}): in memory it is contiguous, eager's is channels last" for name in ("odd sizes", "padded")
    ]
    here = "the strides of its output: in memory it is contiguous, eager's is channels last"
    assert claims.not_checked([here, *limits, "races (one by one)"]) == f"the strides of its output; {at}; races"

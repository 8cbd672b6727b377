"""Export and import: the same twice changes nothing, no line can damage a store, and nothing imported is a proof."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp import class_schema, kernel_file, schema
from kernel_lsp.errors import ExportNotWritten, ImportUnreadable, StoreUnusable
from kernel_lsp.store import exporting, history, importing, kernels, validations
from kernel_lsp.store.info import info
from kernel_lsp.store.validations import Validation
from tests.store.made import BODY, DEVICE, KEY, found, keep

HEAD = '{"kind": "kernel-lsp store", "format": 1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def exported(path, tmp_path):
    """The lines of a store with three verdicts on two kernels."""
    keep(path, found(1), tmp_path / "norm.py", tmp_path)
    keep(path, found(2, "wrong", reason="off by 3"), tmp_path / "norm.py", tmp_path, source="# b\n")
    keep(path, found(3), tmp_path / "norm.py", tmp_path)
    file = tmp_path / "export.jsonl"
    assert exporting.export(path, file) == (3, 2)
    return file


def test_an_import_merges_and_the_second_time_changes_nothing(path, exported, tmp_path):
    other = tmp_path / "other.sqlite"
    keep(other, found(4), tmp_path / "norm.py", tmp_path)
    first = importing.take(other, exported)
    assert (first.verdicts, first.kernels, first.known, first.damaged) == (3, 1, 1, [])
    exporting.export(other, tmp_path / "merged.jsonl")
    second = importing.take(other, exported)
    assert (second.verdicts, second.kernels, second.known, second.damaged) == (0, 0, 5, [])
    exporting.export(other, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "merged.jsonl").read_text()
    assert info(other).imported == 3
    back = importing.take(path, tmp_path / "merged.jsonl")
    assert (back.verdicts, back.known) == (1, 5)


def test_what_was_imported_is_no_proof(exported, tmp_path):
    """A file is text that anyone can write: neither valid here, nor validated here before."""
    other = tmp_path / "other.sqlite"
    importing.take(other, exported)
    assert validations.find(KEY, other) is None
    known = validations.look_up(["python"], "auto", KEY.fingerprint, KEY.body, KEY.bounds, other)
    assert known == validations.Known()
    assert kernels.find(KEY.body, other).source == BODY


@pytest.mark.parametrize("named", [True, False])
def test_the_precision_is_taken_over_and_was_strict_before(path, tmp_path, named):
    keep(path, found(), tmp_path / "norm.py", tmp_path, precision="tf32")
    exporting.export(path, tmp_path / "export.jsonl")
    head, kernel, line = (tmp_path / "export.jsonl").read_text().splitlines()
    data = json.loads(line)
    assert data["precision"] == "tf32"
    if not named:
        del data["precision"]
    (tmp_path / "export.jsonl").write_text("\n".join([head, kernel, json.dumps(data)]))
    assert importing.take(tmp_path / "other.sqlite", tmp_path / "export.jsonl").damaged == []
    (entry,) = history.of_class(tmp_path / "other.sqlite", tmp_path / "norm.py", tmp_path, "Norm", 9).entries
    assert entry.precision == ("tf32" if named else "strict")


@pytest.mark.parametrize("where", ["line", "settings", "nowhere"])
def test_the_setting_that_a_verdict_was_reached_under_is_taken_over(path, tmp_path, where):
    """Exports of version 3 of the store had it among the settings, and of wrong kernels nowhere."""
    keep(path, found(), tmp_path / "norm.py", tmp_path, bounds="check")
    exporting.export(path, tmp_path / "export.jsonl")
    head, kernel, line = (tmp_path / "export.jsonl").read_text().splitlines()
    data = json.loads(line)
    if where != "line":
        assert data.pop("bounds") == "check"
    if where == "settings":
        data["settings"]["bounds"] = "check"
    (tmp_path / "export.jsonl").write_text("\n".join([head, kernel, json.dumps(data)]))
    assert importing.take(tmp_path / "other.sqlite", tmp_path / "export.jsonl").damaged == []
    (entry,) = history.of_class(tmp_path / "other.sqlite", tmp_path / "norm.py", tmp_path, "Norm", 9).entries
    assert entry.bounds == ("trust" if where == "nowhere" else "check")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda line: line[:40], "no JSON"),
        (lambda line: "", None),  # an empty line is none
        (lambda line: "[" * 100_000, ""),
        (lambda line: "\x00\xff", "no JSON"),
        (lambda line: "[]", ""),
        (lambda line: '{"kind": "song"}', "its kind is 'song'"),
        (lambda line: line.replace('"body"', '"boby"', 1), "it has no 'body'"),
        (lambda line: line.replace('"process": ', '"process": 1' + "0" * 30), "too large"),
        (lambda line: line.replace('"reached_at": "2026', '"reached_at": "soon'), "soon"),
        (lambda line: line.replace('"status": "wrong"', '"status": "excellent"'), "status"),
        (lambda line: line.replace('"verdict": {', '"verdict": [{'), "no JSON"),
        (lambda line: line.replace('"median": 100.0', '"median": "fast"'), ""),
        (lambda line: line.replace('"device": "Test GPU"', '"device": "\\ud800"'), ""),
        (lambda line: line.replace('"passed": false', '"passed": "no"'), "check"),
    ],
)
def test_a_damaged_line_is_named_and_the_rest_is_taken(exported, tmp_path, damage, says):
    lines = exported.read_text().splitlines()
    assert '"wrong"' in lines[4]
    lines[4] = damage(lines[4])
    exported.write_text("\n".join(lines))
    other = tmp_path / "other.sqlite"
    done = importing.take(other, exported)
    assert (done.verdicts, done.kernels) == (2, 2)
    assert [error.line for error in done.damaged] == ([5] if says is not None else [])
    assert all(says in str(error) and "Line 5 of " in str(error) for error in done.damaged)
    assert info(other).rows["verdicts"] == 2 and info(other).rows["measurements"] == 2


def test_a_kernel_with_another_text_than_its_hash_says_is_damaged(exported, tmp_path):
    exported.write_text(exported.read_text().replace('"# b\\n"', '"import os\\n"'))
    done = importing.take(tmp_path / "other.sqlite", exported)
    assert (done.verdicts, done.kernels, len(done.damaged)) == (3, 1, 1)
    assert "hash" in str(done.damaged[0])


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n", b"{}\n", b'{"kind": "kernel-lsp store", "format": 9}\n'])
def test_what_is_no_export_is_refused(path, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ImportUnreadable):
        importing.take(path, tmp_path / "file")
    with pytest.raises(ImportUnreadable, match="No such file"):
        importing.take(path, tmp_path / "missing")
    assert not path.exists()


def test_a_line_without_an_end_is_damaged_and_not_read_into_memory(path, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "_LONGEST", 1000)
    (tmp_path / "file").write_text(HEAD + "x" * 12_345 + '\n{"kind": "song"}\n')
    assert [error.line for error in importing.take(path, tmp_path / "file").damaged] == [2, 3]


def test_faults_of_files_are_said(path, tmp_path):
    keep(path, found(), tmp_path / "norm.py", tmp_path)
    with pytest.raises(ExportNotWritten):
        exporting.export(path, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportNotWritten):
        exporting.export(path, tmp_path / "file" / "export")
    (tmp_path / "damaged").write_bytes(b"no database" * 1000)
    (tmp_path / "out").write_text("kept")
    with pytest.raises(StoreUnusable):
        exporting.export(tmp_path / "damaged", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "kept"
    (tmp_path / "in").write_text(HEAD + '{"kind": "song"}\n')
    with pytest.raises(StoreUnusable):
        importing.take(tmp_path / "damaged", tmp_path / "in")
    assert not list(tmp_path.glob(".*"))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.none() | st.floats() | st.integers(-5, 5)
TIMES = st.floats(1e-3, 1e9)
TIMINGS = st.none() | st.builds(schema.Timing, TIMES, TIMES, TIMES, st.integers(0, 100))
CHECKS = st.lists(st.builds(schema.Check, TEXT, st.booleans(), TEXT), max_size=3)
VERDICTS = st.builds(
    schema.Verdict,
    status=st.sampled_from(["ok", "wrong", "slower", "cheating"]),
    reason=TEXT,
    line=st.none() | st.integers(1, 99),
    mode=st.sampled_from(["gpu", "interpreter", "none"]),
    checks=CHECKS,
    error=NUMBER,
    eager_error=NUMBER,
    limits=st.lists(TEXT, max_size=2),
    skipped=st.lists(TEXT, max_size=2),
)
SHAPES = st.builds(
    schema.ShapeMeasurement,
    inputs=st.lists(
        st.builds(class_schema.TensorSpec, TEXT, st.lists(st.integers(0, 9), max_size=3), TEXT), max_size=2
    ),
    eager=TIMINGS,
    compiled=TIMINGS,
    kernel=TIMINGS,
)
MEASUREMENTS = st.none() | st.builds(schema.Measurement, st.lists(SHAPES, max_size=2), missing=TEXT)
MOMENTS = st.datetimes().map(lambda moment: moment.strftime("20%y-%m-%dT%H:%M:%S+00:00"))
KEPT = st.tuples(VERDICTS, MEASUREMENTS, st.none() | st.just(DEVICE), MOMENTS, TEXT, TEXT, TEXT, st.booleans())


@settings(max_examples=12, deadline=None)
@given(rows=st.lists(KEPT, max_size=4))
def test_an_import_of_an_export_exports_the_same(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("exchange")
    for verdict, measurement, device, moment, class_name, source, torch, same in rows:
        validation = Validation(verdict, measurement, device, moment)
        file = folder / "norm.py" if same else folder / "a" / "norm.py"
        keep(folder / "a.sqlite", validation, file, folder, source, class_name, torch=torch)
    exporting.export(folder / "a.sqlite", folder / "a.jsonl")
    for _ in range(2):
        assert importing.take(folder / "b.sqlite", folder / "a.jsonl").damaged == []
        exporting.export(folder / "b.sqlite", folder / "b.jsonl")
        assert (folder / "b.jsonl").read_text() == (folder / "a.jsonl").read_text()
    lines = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines].count("verdict") == len(rows)
    bodies = {kernel_file.body_hash(row[5]) for row in rows if row[5]}
    assert {line["body"] for line in lines if line["kind"] == "kernel"} == bodies

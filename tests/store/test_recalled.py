"""Kernels are found by the graph that they were validated for, and only where they were found correct."""

import sqlite3

import pytest

from kernel_lsp import class_schema
from kernel_lsp.store import exporting, importing, pruning, recalled
from kernel_lsp.store.graphs import Graph, graph_of
from kernel_lsp.store.info import info
from tests.store.made import found, keep

X = class_schema.TensorSpec("x", [8, 32], "float32")
NORM = Graph("sha256:norm", ["x"], [X], ["weight"], {"aten.mul": 2, "aten.rsqrt": 1})
OTHER = Graph("sha256:other", ["x"], [X], ["weight"], {"aten.mul": 2, "aten.mean": 1})
FAR = Graph("sha256:far", ["x"], [X], [], {"aten.sort": 1})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def remember(path, tmp_path):
    """Keep a verdict on a kernel (its text) for a graph."""

    def remember(source, day, graph=NORM, class_name="Norm", **other):
        validation = found(day, other.pop("status", "ok"), other.pop("kernel", 50.0))
        return keep(path, validation, tmp_path / "norm.py", tmp_path, source, class_name, graph=graph, **other)

    return remember


def sources(recalled_ones):
    return [one.kernel.source for one in recalled_ones]


def test_the_fastest_on_the_device_comes_first_then_the_latest(path, remember):
    remember("# elsewhere, long ago\n", 1, kernel=1.0, device="Other GPU")
    remember("# elsewhere\n", 2, kernel=2.0, device="Other GPU")
    remember("# slow\n", 4, kernel=70.0)
    remember("# fast\n", 3, kernel=60.0)
    ones = recalled.find("sha256:norm", "Test GPU", path)
    assert sources(ones) == ["# fast\n", "# slow\n", "# elsewhere\n", "# elsewhere, long ago\n"]
    assert [one.microseconds for one in ones] == [60.0, 70.0, None, None]
    assert (ones[0].graph, ones[0].class_name, ones[0].file, ones[0].here) == (NORM, "Norm", "norm.py", True)
    assert recalled.find("sha256:other", "Test GPU", path) == [] == recalled.find("", "Test GPU", path)


def test_a_body_comes_once_with_its_best_time(path, remember):
    for day, kernel in ((1, 60.0), (2, 40.0), (3, 50.0)):
        remember("# a\n", day, kernel=kernel)
    remember("# a\n", 4, class_name="Copy", fingerprint="sha256:copy")
    (one,) = recalled.find("sha256:norm", "Test GPU", path)
    assert (one.microseconds, one.reached_at[:10], one.class_name) == (40.0, "2026-01-04", "Copy")
    assert info(path).rows["graphs"] == 2  # of two classes


def test_what_was_found_wrong_is_not_recalled(path, remember):
    remember("# never right\n", 1, status="wrong")
    remember("# right once\n", 2)
    assert sources(recalled.find("sha256:norm", "Test GPU", path)) == ["# right once\n"]
    remember("# right once\n", 3, status="wrong", torch="2.12.0")
    assert recalled.find("sha256:norm", "Test GPU", path) == []
    remember("# right once\n", 4, status="slower")
    assert sources(recalled.find("sha256:norm", "Test GPU", path)) == ["# right once\n"]


def test_each_setting_of_bounds_has_verdicts_of_its_own(path, remember):
    check = Graph(**{**vars(NORM), "bounds": "check"})
    remember("# looks\n", 1, check, bounds="check")
    remember("# looks\n", 2)
    remember("# trusts\n", 3)
    remember("# trusts\n", 4, check, status="wrong", bounds="check")
    ones = recalled.find("sha256:norm", "Test GPU", path)
    assert sorted((one.kernel.source, one.graph.bounds) for one in ones) == [
        ("# looks\n", "check"),
        ("# looks\n", "trust"),
        ("# trusts\n", "trust"),
    ]
    assert sorted(sources(recalled.nearest(NORM.graph, NORM.ops, "Test GPU", path))) == ["# looks\n", "# trusts\n"]


def test_a_kernel_is_recalled_with_the_precision_that_it_was_validated_under(path, remember):
    remember("# rounds\n", 1, precision="tf32")
    remember("# rounds\n", 2, status="wrong")  # strictly
    remember("# exact\n", 1)
    ones = recalled.find("sha256:norm", "Test GPU", path)
    assert {one.kernel.source: one.precision for one in ones} == {"# rounds\n": "tf32", "# exact\n": "strict"}


def test_the_nearest_have_the_graph_then_the_operators_then_the_device(path, remember):
    remember("# same graph, elsewhere\n", 1, device="Other GPU")
    remember("# like it, elsewhere\n", 2, OTHER, "Mean", device="Other GPU")
    remember("# like it\n", 1, OTHER, "Mean")
    remember("# far\n", 3, FAR, "Sort")
    ones = recalled.nearest(NORM.graph, NORM.ops, "Test GPU", path, most=9)
    assert sources(ones) == ["# same graph, elsewhere\n", "# like it\n", "# like it, elsewhere\n"]
    assert len(recalled.nearest(NORM.graph, NORM.ops, "Test GPU", path, most=2)) == 2
    assert recalled.overlap(NORM.ops, OTHER.ops) == 0.5 and recalled.overlap({}, {}) == 0.0


def test_graphs_are_exported_imported_and_pruned_with_their_verdicts(path, remember, tmp_path):
    remember("# old\n", 1, OTHER, "Mean")
    remember("# pinned\n", 2, Graph(**{**vars(NORM), "pinned": True, "bounds": "check"}), bounds="check")
    exporting.export(path, tmp_path / "export.jsonl")
    other = tmp_path / "other.sqlite"
    assert importing.take(other, tmp_path / "export.jsonl").damaged == []
    (one,) = recalled.find("sha256:norm", "Test GPU", other)
    assert (one.graph.pinned, one.graph.bounds, one.graph.inputs, one.here) == (True, "check", [X], False)
    exporting.export(other, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "export.jsonl").read_text()
    remember("# new\n", 3, None, "Mean")
    pruning.prune(path, None, 1)
    assert recalled.find("sha256:other", "Test GPU", path) == []
    assert info(path).rows["graphs"] == 1


@pytest.mark.parametrize(
    "damage", [('"graph": "sha256:norm"', '"graph": 7'), ('"aten.mul": 2', '"aten.mul": "x"'), ('["x"]', '"x", "y"')]
)
def test_a_damaged_graph_is_named(path, remember, tmp_path, damage):
    remember("# a\n", 1)
    exporting.export(path, tmp_path / "export.jsonl")
    text = (tmp_path / "export.jsonl").read_text()
    assert damage[0] in text
    (tmp_path / "export.jsonl").write_text(text.replace(*damage))
    assert len(importing.take(tmp_path / "other.sqlite", tmp_path / "export.jsonl").damaged) == 1


def test_an_export_without_graphs_is_taken(path, remember, tmp_path):
    """As version 2 wrote it."""
    remember("# a\n", 1, None)
    exporting.export(path, tmp_path / "export.jsonl")
    text = (tmp_path / "export.jsonl").read_text()
    (tmp_path / "export.jsonl").write_text(text.replace(', "graph": null', ""))
    done = importing.take(tmp_path / "other.sqlite", tmp_path / "export.jsonl")
    assert (done.verdicts, done.damaged) == (1, [])


def test_damaged_rows_are_passed_over(path, remember):
    remember("# a\n", 1)
    remember("# b\n", 1, OTHER, "Mean")
    with sqlite3.connect(path) as connection:
        connection.execute("update graphs set ops = '{', inputs = '[1]' where graph = 'sha256:norm'")
    assert recalled.find("sha256:norm", "Test GPU", path) == []
    assert sources(recalled.nearest(NORM.graph, NORM.ops, "Test GPU", path)) == ["# b\n"]


def test_nothing_is_kept_of_training_or_without_a_graph():
    specimen = class_schema.Specimen(
        "Norm", "norm", "", "", graph="sha256:norm", inputs=[X], state=["weight"], forward=["x"]
    )
    assert graph_of(specimen, True, "check") == Graph("sha256:norm", ["x"], [X], ["weight"], {}, True, "check")
    specimen.training = True
    assert graph_of(specimen, False, "trust") is None is graph_of(None, False, "trust")


def test_without_a_store_there_is_nothing(tmp_path):
    assert not recalled.anything(None) and not recalled.anything(tmp_path / "none.sqlite")
    assert recalled.find("sha256:norm", "", None) == [] == recalled.nearest("", {"aten.mul": 1}, "", None)

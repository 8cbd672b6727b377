"""Which kernel a new one is compared with, and how it is found again."""

import dataclasses

import pytest

from kernel_lsp import kernel_file, schema
from kernel_lsp.store import fastest_before, validations
from kernel_lsp.store.graphs import Graph
from tests.store.made import BODY, KEY, about, found, keep

INPUTS = "float32[8, 32]"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def fastest(store):
    def fastest(
        other_than=KEY.body,
        device=KEY.device,
        inputs=INPUTS,
        fingerprint=KEY.fingerprint,
        bounds="trust",
        precision="strict",
        keeps=False,
    ):
        rival = fastest_before.fastest(fingerprint, device, bounds, inputs, [other_than], store, precision, keeps)
        return (rival.source, rival.kernel) if rival is not None else None

    return fastest


def test_the_fastest_other_kernel_at_the_same_shapes_on_the_same_device(store, fastest, tmp_path):
    assert fastest() is None
    file = tmp_path / "norm.py"
    keep(store, found(kernel=10.0), file, tmp_path)  # itself
    assert fastest() is None
    keep(store, found(kernel=60.0), file, tmp_path, source="# slower\n")
    keep(store, found(kernel=50.0), file, tmp_path, source="# faster\n", torch="2.9.0")
    keep(store, found(kernel=5.0), file, tmp_path, source="# elsewhere\n", device="Another GPU")
    keep(store, found(kernel=5.0), file, tmp_path, source="# of another class\n", fingerprint="sha256:other")
    keep(store, found(kernel=5.0, status="wrong"), file, tmp_path, source="# wrong\n")
    assert fastest() == ("# faster\n", 50.0)
    assert fastest(inputs="float32[9, 32]") is None
    assert fastest(device="Another GPU") == ("# elsewhere\n", 5.0)


def test_one_that_need_not_look_at_its_indices_is_no_measure_for_one_that_has_to(store, fastest, tmp_path):
    file = tmp_path / "norm.py"
    keep(store, found(1, kernel=40.0), file, tmp_path, source="# trusts\n")
    keep(store, found(2, status="wrong"), file, tmp_path, source="# trusts\n", bounds="check")
    keep(store, found(1, kernel=50.0), file, tmp_path, source="# looks\n", bounds="check")
    assert fastest(bounds="check") == ("# looks\n", 50.0)
    assert fastest() == ("# trusts\n", 40.0)


def test_one_that_rounds_is_no_measure_for_one_that_may_not(store, fastest, tmp_path):
    file = tmp_path / "norm.py"
    keep(store, found(1, kernel=20.0), file, tmp_path, source="# rounds\n", precision="tf32")
    keep(store, found(2, status="wrong"), file, tmp_path, source="# rounds\n")
    keep(store, found(1, kernel=50.0), file, tmp_path, source="# does not\n")
    assert fastest() == ("# does not\n", 50.0)
    assert fastest(precision="tf32") == ("# rounds\n", 20.0) and fastest(precision="half") is None
    (once, _) = fastest_before.candidate(KEY.fingerprint, kernel_file.body_hash("# does not\n"), store)
    assert once.precision == "strict"


def test_one_that_keeps_packed_weights_and_one_that_does_not_are_no_measure_for_each_other(store, fastest, tmp_path):
    file, keeps = tmp_path / "norm.py", "class A:\n    def forget_packed_weights(self):\n        pass\n"
    keep(store, found(1, kernel=20.0), file, tmp_path, source=keeps)
    keep(store, found(1, kernel=50.0), file, tmp_path, source="# does not\n")
    assert fastest() == ("# does not\n", 50.0)
    assert fastest(keeps=True) == (keeps, 20.0)


def test_one_that_was_found_wrong_since_is_none(store, fastest, tmp_path):
    file = tmp_path / "norm.py"
    keep(store, found(1, kernel=50.0), file, tmp_path, source="# once right\n")
    keep(store, found(2, status="wrong"), file, tmp_path, source="# once right\n", torch="2.12.0")
    assert fastest() is None
    keep(store, found(3, kernel=55.0), file, tmp_path, source="# once right\n", torch="2.13.0")
    assert fastest() == ("# once right\n", 55.0)
    keep(store, found(4, status="wrong"), file, tmp_path, source="# once right\n", device="Another GPU")
    keep(store, found(4, status="wrong"), file, tmp_path, source="# never right\n")
    assert fastest() == ("# once right\n", 55.0)


def test_the_latest_time_of_a_kernel_counts_unless_it_was_taken_beside_other_work(store, fastest, tmp_path):
    file = tmp_path / "norm.py"
    keep(store, found(1, kernel=50.0), file, tmp_path, source="# was fast\n", torch="2.9.0")
    keep(store, found(2, kernel=60.0), file, tmp_path, source="# was fast\n")
    assert fastest() == ("# was fast\n", 60.0)
    busy = found(3, kernel=90.0)
    busy.measurement.beside = "87 % busy by pid 4711 (python)"
    keep(store, busy, file, tmp_path, source="# was fast\n")
    assert fastest() == ("# was fast\n", 60.0)
    keep(store, busy, file, tmp_path, source="# never timed alone\n")
    assert fastest(other_than=kernel_file.body_hash("# was fast\n")) == ("# never timed alone\n", 90.0)
    keep(store, dataclasses.replace(found(4), measurement=None), file, tmp_path, source="# was fast\n")
    assert fastest() == ("# was fast\n", 60.0)


def test_what_it_was_validated_with_is_there_to_compare(store, tmp_path):
    keep(store, found(kernel=50.0), tmp_path / "norm.py", tmp_path, source="# faster\n", torch="2.9.0", driver="570")
    rival = fastest_before.fastest(KEY.fingerprint, KEY.device, "trust", INPUTS, [KEY.body], store)
    assert (rival.torch, rival.driver, rival.reached_at[:10]) == ("2.9.0", "570", "2026-01-01")
    assert rival.body == kernel_file.body_hash("# faster\n")


@pytest.mark.parametrize("pinned", [True, False])
def test_a_kernel_is_found_again_as_it_was_proposed(store, tmp_path, pinned):
    settings = dataclasses.replace(about(tmp_path / "norm.py", tmp_path), settings={"pinned": pinned})
    validations.keep(KEY, found(), store, settings)
    candidate, pinned_known = fastest_before.candidate(KEY.fingerprint, KEY.body, store)
    assert pinned_known and (candidate.source, candidate.generator, candidate.note) == (
        BODY,
        "synthesizer",
        "3 of 3 ops",
    )
    assert candidate.pinned is pinned
    assert fastest_before.candidate("sha256:other", KEY.body, store) is None
    assert fastest_before.candidate(KEY.fingerprint, "sha256:other", store) is None
    assert fastest_before.candidate(KEY.fingerprint, KEY.body, None) is None


@pytest.mark.parametrize(
    ("graph", "variant", "says"),
    [
        (Graph("sha256:graph", pinned=True), "", (True, True)),
        (Graph("sha256:graph"), "", (False, True)),
        (None, schema.NARROWED, (True, True)),
        (None, "", (False, False)),
    ],
)
def test_what_an_earlier_version_kept_of_a_pinned_kernel_is_read(store, tmp_path, graph, variant, says):
    """Before the settings held it, the graph did, and before that a variant of a model's answer was named so."""
    kept = dataclasses.replace(about(tmp_path / "norm.py", tmp_path, graph=graph), variant=variant)
    validations.keep(KEY, found(1), store, kept)
    later = dataclasses.replace(kept, graph=None)  # a validation that says nothing of it
    validations.keep(KEY, dataclasses.replace(found(2), measurement=None), store, later)
    candidate, known = fastest_before.candidate(KEY.fingerprint, KEY.body, store)
    assert (candidate.pinned, known) == says

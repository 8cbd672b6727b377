"""Pruning removes what is old, and never the latest verdict of a class on a device."""

import datetime

import pytest

from kernel_lsp.store import baselines, history, kernels, pruning, validations
from kernel_lsp.store.info import info
from tests.store.made import KEY, found, keep, timing


@pytest.fixture
def path(tmp_path):
    """Four verdicts on one class, the last on another device, and one on another class; each with a kernel of its own."""
    path, file = tmp_path / "store.sqlite", tmp_path / "norm.py"
    for day in (1, 2, 3):
        keep(path, found(day), file, tmp_path, source=f"# {day}\n", fingerprint=f"sha256:{day}")
    keep(path, found(4), file, tmp_path, source="# 4\n", device="Other GPU")
    keep(path, found(1), file, tmp_path, source="# 5\n", class_name="Other")
    return path


def days(path, tmp_path):
    seen = history.of_class(path, tmp_path / "norm.py", tmp_path, "Norm", 99).entries
    return [int(entry.reached_at[8:10]) for entry in seen]


def test_the_latest_few_of_each_class_on_each_device_stay(path, tmp_path):
    pruned = pruning.prune(path, None, 2)
    assert (pruned.verdicts, pruned.kernels) == (1, 1) and days(path, tmp_path) == [2, 3, 4]
    assert pruning.prune(path, None, 1).verdicts == 1 and days(path, tmp_path) == [3, 4]
    rows = info(path).rows
    assert (rows["verdicts"], rows["measurements"], rows["kernels"], rows["targets"]) == (3, 3, 3, 3)
    assert pruning.prune(path, None, 1).verdicts == 0


def test_what_is_younger_stays(path, tmp_path):
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    store = baselines.Store(path)
    key = baselines.Key("Test GPU", "1", "2", "3", "4", "5")
    store.keep(key, "eager", timing(1.0), "2026-01-01T00:00:00+00:00")
    store.keep(key, "default", timing(1.0), "2026-01-03T00:00:00+00:00")
    pruned = pruning.prune(path, age.total_seconds() / 86400, None)
    assert (pruned.verdicts, pruned.baselines) == (2, 1)  # of the other class the one there is stays
    assert days(path, tmp_path) == [3, 4] and set(store.find(key)) == {"default"}
    assert pruning.prune(path, 1e300, None).verdicts == 0


def test_the_proof_of_a_kernel_that_was_not_touched_for_long_stays(tmp_path):
    path = tmp_path / "store.sqlite"
    keep(path, found(1), tmp_path / "norm.py", tmp_path)
    pruning.prune(path, 0, 1)
    assert validations.find(KEY, path) == found(1) and kernels.find(KEY.body, path) is not None


def test_the_proof_under_each_setting_of_bounds_stays(tmp_path):
    path, file = tmp_path / "store.sqlite", tmp_path / "norm.py"
    keep(path, found(1), file, tmp_path)
    keep(path, found(2), file, tmp_path)
    checked = keep(path, found(3), file, tmp_path, bounds="check")
    assert pruning.prune(path, None, 1).verdicts == 1
    assert validations.find(KEY, path) == found(2) and validations.find(checked, path) == found(3)


def test_the_file_gets_smaller(tmp_path):
    path = tmp_path / "store.sqlite"
    for day in range(1, 29):
        keep(path, found(day, reason="x" * 50_000), tmp_path / "norm.py", tmp_path)
    before = info(path).bytes
    pruning.prune(path, None, 1)
    assert info(path).bytes < before / 5


def test_nothing_is_made_where_there_is_no_file(tmp_path):
    assert pruning.prune(tmp_path / "none.sqlite", 1, 1).verdicts == 0
    assert not (tmp_path / "none.sqlite").exists()

"""Kept baselines: found by the whole key alone, written by several processes, and never in the way of the work."""

import dataclasses
import logging
import multiprocessing
import sqlite3
import threading

import pytest

from kernel_lsp import class_schema, schema
from kernel_lsp.store import database
from kernel_lsp.store.baselines import Kept, Key, Store, inputs_with_strides, key_of

KEY = Key("Test GPU", "580.1", "2.11.0", "3.6.0", "abc", "float32[8, 32]")
TIMING = schema.Timing(100.5, 99.0, 103.0, 50)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "store.sqlite"


def warnings(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_kept_is_found_again_by_mode(path):
    Store(path).keep(KEY, "eager", TIMING, "2026-01-02T03:04:05+00:00")
    store = Store(path)
    store.keep(KEY, "default", TIMING, "2026-01-02T03:04:05+00:00", "stand-in: another H100")
    found = store.find(KEY)
    assert found == {
        "eager": Kept(TIMING, "2026-01-02T03:04:05+00:00"),
        "default": Kept(TIMING, "2026-01-02T03:04:05+00:00", "stand-in: another H100"),
    }
    assert found["eager"].said() == "kept: measured 2026-01-02T03:04:05+00:00"
    assert found["default"].said() == "stand-in: another H100"


def test_the_later_time_takes_the_place_of_the_earlier(path):
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    store.keep(KEY, "eager", dataclasses.replace(TIMING, median=7.0))
    assert store.find(KEY)["eager"].timing.median == 7.0
    assert store.find(KEY)["eager"].measured_at.endswith("+00:00")


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Key)])
def test_every_part_of_the_key_counts(path, field):
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    other = True if field == "training" else "other"
    assert store.find(dataclasses.replace(KEY, **{field: other})) == {}


def test_the_environment_names_the_file_or_none(path, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(path))
    assert Store(database.default_path()).path == path
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    store = Store(database.default_path())
    store.keep(KEY, "eager", TIMING)
    assert store.path is None and not store.usable and store.find(KEY) == {}
    monkeypatch.delenv("KERNEL_LSP_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        Store(database.default_path()).path.is_relative_to(tmp_path)
        and Store(database.default_path()).path.name == "store.sqlite"
    )


def test_a_key_comes_from_a_report_that_knows_everything():
    inputs = [
        class_schema.TensorSpec("x", [8, 32], "float32", [32, 1]),
        class_schema.TensorSpec("y", [4, 3], "int64", [1, 4]),
    ]
    device = schema.Device("Test GPU", "cuda", torch="2.11.0", triton="3.6.0", driver="580.1")
    report = schema.Report(schema.Target("", "Norm", fingerprint="abc"), device=device)
    assert key_of(report) is None
    report.specimen = class_schema.Specimen("Norm", "norm", "", "", inputs, training=True)
    expected = Key("Test GPU", "580.1", "2.11.0", "3.6.0", "abc", "float32[8, 32]; int64[4, 3] stride [1, 4]", True)
    assert key_of(report) == expected
    assert key_of(report, inputs[:1]) == dataclasses.replace(expected, inputs="float32[8, 32]")
    device.driver = ""
    assert key_of(report) is None
    assert inputs_with_strides([]) == ""


def write_many(path, name):
    store = Store(path)
    for i in range(40):
        store.keep(dataclasses.replace(KEY, fingerprint=f"{name}-{i}"), "eager", TIMING)
    store.close()


def test_several_processes_open_and_write_at_once(path):
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=write_many, args=(path, name)) for name in "abcd"]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    (count,) = sqlite3.connect(path).execute("select count(*) from baselines").fetchone()
    assert count == 160


def test_threads_share_a_store(path):
    store = Store(path)
    threads = [threading.Thread(target=store.keep, args=(KEY, mode, TIMING)) for mode in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store.find(KEY)) == list("abcdef")


# The faults. Each is the real one of SQLite or of the file system, and each is said once.


def test_a_locked_database_is_waited_for_and_then_done_without(path, monkeypatch, caplog):
    monkeypatch.setattr(database, "BUSY", 0.2)
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin exclusive")
    store.keep(KEY, "default", TIMING)
    store.keep(KEY, "default", TIMING)
    assert len(warnings(caplog)) == 1 and "locked" in caplog.text
    assert set(store.find(KEY)) == {"eager"}  # what can be read still is
    late = Store(path)
    assert set(late.find(KEY)) == {"eager"}
    late.keep(KEY, "default", TIMING)
    assert len(warnings(caplog)) == 2
    other.execute("rollback")
    Store(path).keep(KEY, "default", TIMING)
    assert set(late.find(KEY)) == {"eager", "default"}


def test_a_database_that_is_locked_for_a_moment_loses_nothing(path):
    store = Store(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    threading.Timer(0.3, other.execute, ["rollback"]).start()
    store.keep(KEY, "eager", TIMING)
    assert set(store.find(KEY)) == {"eager"}


def test_a_read_only_database_is_read(path, caplog):
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    store._connection.execute("pragma query_only = on")
    for _ in range(3):
        store.keep(KEY, "default", TIMING)
    assert len(warnings(caplog)) == 1 and "readonly" in caplog.text
    assert set(store.find(KEY)) == {"eager"}


def test_a_folder_that_cannot_be_made(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "store.sqlite")
    store.keep(KEY, "eager", TIMING)
    assert store.find(KEY) == {} and not store.usable and len(warnings(caplog)) == 1


def test_a_folder_in_the_place_of_the_file(tmp_path, caplog):
    assert not Store(tmp_path).usable and len(warnings(caplog)) == 1


def test_a_full_disk(path, caplog):
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    (pages,) = store._connection.execute("pragma page_count").fetchone()
    store._connection.execute(f"pragma max_page_count = {pages}")
    for i in range(3):
        store.keep(dataclasses.replace(KEY, inputs=f"{i}" * 20_000), "eager", TIMING)
    assert len(warnings(caplog)) == 1 and "full" in caplog.text
    assert set(store.find(KEY)) == {"eager"}


def test_a_file_that_is_no_database_is_left_as_it_is(path, caplog):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but somebody's file\n" * 100)
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    assert store.find(KEY) == {} and len(warnings(caplog)) == 1
    assert path.read_bytes().startswith(b"not a database")


def test_a_damaged_database(path, caplog):
    store = Store(path)
    for i in range(200):
        store.keep(dataclasses.replace(KEY, fingerprint=f"{i}"), "eager", TIMING)
    store.close()
    whole = path.read_bytes()
    assert len(whole) > 3 * 4096
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    assert store.find(KEY) == {}
    assert 1 <= len(warnings(caplog)) <= 2


def test_a_database_of_a_newer_version_is_not_touched(path, caplog):
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 7")
    assert not Store(path).usable
    assert "version 7" in caplog.text


def test_a_row_that_is_no_timing_is_as_if_it_were_not_there(path):
    store = Store(path)
    store.keep(KEY, "eager", TIMING)
    store.keep(KEY, "default", TIMING)
    with sqlite3.connect(path) as connection:
        connection.execute("update baselines set timing = '{\"median\": 1}' where mode = 'eager'")
    assert set(store.find(KEY)) == {"default"}

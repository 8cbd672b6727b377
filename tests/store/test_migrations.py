"""Files of earlier versions are taken over with what they hold; what is no store of ours is left as it is."""

import contextlib
import dataclasses
import json
import multiprocessing
import sqlite3

import pytest

from kernel_lsp import kernel_file, schema
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.store import baselines, environments, history, migrations, recalled, validations
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.info import info
from kernel_lsp.store.validations import Validation
from tests.store.made import KEY, about, found, keep, timing

FOUND = found()
BASELINE = baselines.Key("Test GPU", "580.1", "2.11.0", "3.6.0", "sha256:class", "float32[8, 32]")

# As version 1 made its file: each table when it was first needed.
VALIDATIONS = """
create table validations (
    fingerprint text not null, body text not null,
    device text not null, torch text not null, triton text not null, version text not null,
    status text not null, mode text not null, passed integer not null, checks integer not null,
    verdict text not null, measurement text not null, ran_on text not null, validated_at text not null,
    primary key (fingerprint, body, device, torch, triton, version)
) without rowid
"""
ENVIRONMENTS = """
create table environments (
    command text not null primary key, devices text not null, seen_at text not null
) without rowid
"""
BASELINES = """
create table baselines (
    device text not null, driver text not null, torch text not null, triton text not null,
    fingerprint text not null, inputs text not null, training integer not null, mode text not null,
    timing text not null, measured_at text not null, mark text not null,
    primary key (device, driver, torch, triton, fingerprint, inputs, training, mode)
) without rowid
"""


def version_1(path, tables=(VALIDATIONS, ENVIRONMENTS, BASELINES)):
    """A file as version 1 wrote it, with one row in each of its tables."""
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    records = [json.dumps(schema.to_json(r)) for r in (FOUND.verdict, FOUND.measurement, FOUND.device)]
    rows = {
        VALIDATIONS: (*_key(), "ok", "gpu", 1, 1, *records, FOUND.validated_at),
        ENVIRONMENTS: ('["/venv/python"]', json.dumps([schema.to_json(FOUND.device)]), "2026-01-01T00:00:00+00:00"),
        BASELINES: (
            *("Test GPU", "580.1", "2.11.0", "3.6.0", "sha256:class", "float32[8, 32]", 0, "eager"),
            *(json.dumps(schema.to_json(timing(7.0))), "2026-01-01T00:00:00+00:00", ""),
        ),
    }
    with connection:
        for table in tables:
            connection.execute(table)
            name = table.split()[2]
            connection.execute(f"insert into {name} values ({', '.join('?' * len(rows[table]))})", rows[table])
        connection.execute("pragma user_version = 1")
    connection.close()


def _key():
    return KEY.fingerprint, KEY.body, KEY.device, KEY.torch, KEY.triton, KEY.version


def test_a_file_of_version_1_is_taken_over_when_it_is_read(tmp_path):
    path = tmp_path / "store.sqlite"
    version_1(path)
    assert validations.find(KEY, path) == FOUND
    assert environments.find_devices(["/venv/python"], path) == [schema.to_json(FOUND.device)]
    assert baselines.Store(path).find(BASELINE)["eager"].timing == timing(7.0)
    assert info(path).version == migrations.VERSION
    tables = {row[0] for row in sqlite3.connect(path).execute("select name from sqlite_master where type = 'table'")}
    assert "validations" not in tables


def test_what_version_1_kept_is_history_of_the_class_that_has_its_fingerprint(tmp_path):
    path, file = tmp_path / "store.sqlite", tmp_path / "norm.py"
    version_1(path)
    assert history.of_class(path, file, tmp_path, "Norm", 9).entries == []
    (entry,) = history.of_class(path, file, tmp_path, "Norm", 9, KEY.fingerprint).entries
    assert (entry.over_eager, entry.error, entry.driver, entry.here) == (2.0, 1e-7, "580.1", True)
    keep(path, found(2), file, tmp_path)
    assert len(history.of_class(path, file, tmp_path, "Norm", 9).entries) == 2


@pytest.mark.parametrize("tables", [(VALIDATIONS,), (BASELINES,), ()])
def test_a_file_of_version_1_that_lacks_tables(tmp_path, tables):
    path = tmp_path / "store.sqlite"
    version_1(path, tables)
    keep(path, found(2), tmp_path / "norm.py", tmp_path)
    assert validations.find(KEY, path) == found(2)
    assert info(path).rows["verdicts"] == 1 + (VALIDATIONS in tables)


def test_damaged_rows_of_version_1_do_not_stop_it(tmp_path):
    path = tmp_path / "store.sqlite"
    version_1(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update validations set verdict = '{', measurement = '[1]', ran_on = 'null'")
    assert validations.find(KEY, path) is None
    assert info(path).rows["verdicts"] == 1


def migrate(path):
    assert environments.find_devices(["/venv/python"], path)


def test_two_processes_migrate_at_once(tmp_path):
    path = tmp_path / "store.sqlite"
    version_1(path)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=migrate, args=(path,)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    assert info(path).rows["verdicts"] == 1 and validations.find(KEY, path) == FOUND


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    version_1(path)

    def failing(connection):
        connection.execute("drop table environments")
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", (*migrations.STEPS, failing))
        patch.setattr(migrations, "VERSION", len(migrations.STEPS))
        with pytest.raises(StoreUnusable, match="disk I/O error"):
            validations.keep(KEY, FOUND, path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma user_version").fetchone() == (1,)
        assert connection.execute("select count(*) from validations").fetchone() == (1,)
    assert environments.find_devices(["/venv/python"], path)


def test_a_file_of_version_2_gets_the_tables_of_graphs(tmp_path):
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        for step in migrations.STEPS[:2]:
            step(connection)
        connection.execute("pragma user_version = 2")
    assert not recalled.anything(path)
    keep(path, found(), tmp_path / "norm.py", tmp_path, graph=Graph("sha256:graph"))
    assert recalled.anything(path) and info(path).rows["graphs"] == 1


def test_what_version_3_kept_holds_for_the_setting_that_it_was_reached_under(tmp_path):
    path, file = tmp_path / "store.sqlite", tmp_path / "norm.py"
    graph = Graph("sha256:graph", bounds="check")
    keep(path, found(1), file, tmp_path, "# trusts\n", graph=Graph("sha256:graph"))
    keep(path, Validation(schema.Verdict("ok"), None, None, "2026-01-02"), file, tmp_path, "# graph\n", graph=graph)
    settings = dataclasses.replace(about(file, tmp_path, source="# timed\n"), settings={"bounds": "check"})
    validations.keep(dataclasses.replace(KEY, body=kernel_file.body_hash("# timed\n")), found(3), path, settings)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:  # back to what version 3 had
        connection.execute("drop index verdicts_by_key")
        connection.execute("alter table verdicts drop column bounds")
        connection.execute("alter table verdicts drop column precision")
        connection.execute("pragma user_version = 3")
    entries = history.of_class(path, file, tmp_path, "Norm", 9).entries
    assert [entry.bounds for entry in entries] == ["trust", "check", "check"]
    assert validations.find(dataclasses.replace(KEY, body=entries[0].body), path) == found(1)
    assert validations.find(dataclasses.replace(KEY, body=entries[2].body), path) is None
    assert {entry.precision for entry in entries} == {"strict"}


def test_the_database_of_another_program_is_left_as_it_is(tmp_path):
    path = tmp_path / "theirs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table songs (title text)")
    for act in (lambda: validations.find(KEY, path), lambda: validations.keep(KEY, FOUND, path)):
        with pytest.raises(StoreUnusable, match="another program"):
            act()
    with sqlite3.connect(path) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("songs",)]

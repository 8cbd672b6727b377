"""What was validated here: found by the whole key alone, written by several processes, its faults told and no more."""

import dataclasses
import multiprocessing
import sqlite3
import threading

import pytest

from kernel_lsp import __version__, kernel_file, schema
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.store import baselines, database, environments, validations
from kernel_lsp.store.validations import Key, Known, Validation
from tests.store import made

DEVICE = schema.Device("Test GPU", "cuda", "9.0", torch="2.11.0", triton="3.6.0")
KEY = Key("sha256:class", "sha256:body", "Test GPU", "2.11.0", "3.6.0", __version__)
TIMING = schema.Timing(100.5, 99.0, 103.0, 50)
FOUND = Validation(
    schema.Verdict("ok", mode="gpu", checks=[schema.Check("odd sizes", True, "x 3×5")], error=1e-7, limits=["races"]),
    schema.Measurement([schema.ShapeMeasurement([], eager=TIMING, kernel=TIMING)], DEVICE),
    DEVICE,
    "2026-01-02T03:04:05+00:00",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "store.sqlite"


def test_what_is_kept_is_found_whole_and_the_latest_counts(path):
    assert validations.find(KEY, path) is None and not path.exists()
    validations.keep(KEY, FOUND, path)
    assert validations.find(KEY, path) == FOUND
    wrong = Validation(schema.Verdict("wrong", "off by 3"), None, None, "2026-01-03T00:00:00+00:00")
    validations.keep(KEY, wrong, path)
    assert validations.find(KEY, path) == wrong
    rows = sqlite3.connect(path).execute("select status, mode, passed, failed from verdicts order by reached_at")
    assert rows.fetchall() == [("ok", "gpu", 1, 0), ("wrong", "none", 0, 0)]
    validations.keep(KEY, FOUND, path)  # of another clock: what is later by its own time counts
    assert validations.find(KEY, path) == wrong


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Key)])
def test_every_part_of_the_key_counts(path, field):
    validations.keep(KEY, FOUND, path)
    assert validations.find(dataclasses.replace(KEY, **{field: "other"}), path) is None


def test_without_a_worker_the_device_that_the_last_one_named_counts(path):
    command, other = ["/venv/python"], dataclasses.replace(DEVICE, torch="2.12.0")
    validations.keep(KEY, FOUND, path)

    def found(wanted="auto", command=command, bounds="trust"):
        return validations.look_up(command, wanted, KEY.fingerprint, KEY.body, bounds, path)

    def changed(*arguments, **others):
        known = found(*arguments, **others)
        assert known.valid is None and known.before == FOUND
        return known.changed

    assert changed() == "with torch 2.11.0 on Test GPU before"  # no worker has said anything yet
    environments.keep_devices(command, [schema.to_json(DEVICE)], path)
    assert found() == Known(FOUND) and found("cuda:0") == Known(FOUND)
    assert changed(bounds="check") == "with bounds trust before; now check"
    assert changed("cuda:1") and changed("interpreter") and changed(command=["/other/python"])
    environments.keep_devices(command, [schema.to_json(other)], path)
    assert changed() == "with torch 2.11.0 before; now 2.12.0"
    gone = dataclasses.replace(other, name="Better GPU", driver="590.2")
    environments.keep_devices(command, [schema.to_json(gone)], path)
    assert changed() == "on Test GPU, with torch 2.11.0 before; now Better GPU, torch 2.12.0"
    environments.keep_devices(command, ["nonsense"], path)
    assert changed() == "with torch 2.11.0 on Test GPU before"
    assert validations.look_up(command, "auto", "sha256:other", KEY.body, "trust", path) == Known()


def test_no_key_without_what_it_takes():
    assert validations.key_for(DEVICE, "sha256:class", "sha256:body", "trust") == KEY
    assert validations.key_for(None, "a", "b", "trust") is None
    assert validations.key_for(DEVICE, "", "b", "trust") is None
    assert validations.key_for(dataclasses.replace(DEVICE, torch=""), "a", "b", "trust") is None


def test_no_store_keeps_nothing_and_is_no_fault():
    validations.keep(KEY, FOUND, None)
    environments.keep_devices(["python"], [], None)
    assert validations.find(KEY, None) is None and environments.find_devices(["python"], None) == []
    assert validations.look_up(["python"], "auto", "a", "b", "trust", None) == Known()


def write_many(path, name):
    store = baselines.Store(path)  # in the same file
    for i in range(30):
        validations.keep(dataclasses.replace(KEY, body=f"{name}-{i}"), FOUND, path)
        store.keep(baselines.Key("d", "1", "2", "3", f"{name}-{i}", ""), "eager", TIMING)
        assert validations.find(dataclasses.replace(KEY, body=f"{name}-{i}"), path) == FOUND
    store.close()


def test_several_processes_write_and_read_at_once(path):
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=write_many, args=(path, name)) for name in "abcd"]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    for table in ("verdicts", "baselines"):
        assert sqlite3.connect(path).execute(f"select count(*) from {table}").fetchone() == (120,)


# The faults. Each is the real one of SQLite or of the file system.


def test_a_writer_is_waited_for_and_does_not_stop_readers(path, monkeypatch):
    validations.keep(KEY, FOUND, path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    assert validations.find(KEY, path) == FOUND
    threading.Timer(0.3, other.execute, ["rollback"]).start()
    validations.keep(dataclasses.replace(KEY, body="second"), FOUND, path)
    other.execute("begin immediate")
    monkeypatch.setattr(database, "BUSY", 0.2)
    with pytest.raises(StoreUnusable, match=r"could not be written .*locked"):
        validations.keep(dataclasses.replace(KEY, body="third"), FOUND, path)
    other.execute("rollback")


@pytest.mark.parametrize("content", [b"not a database, but somebody's file\n" * 100, b""])
def test_what_is_no_database(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    if content:
        for act in (lambda: validations.find(KEY, path), lambda: validations.keep(KEY, FOUND, path)):
            with pytest.raises(StoreUnusable, match="KERNEL_LSP_STORE"):
                act()
        assert path.read_bytes() == content
    else:  # an empty file is an empty database
        assert validations.find(KEY, path) is None
        validations.keep(KEY, FOUND, path)
        assert validations.find(KEY, path) == FOUND


def test_a_damaged_database_and_a_folder_that_cannot_be_made(path, tmp_path):
    for i in range(50):
        validations.keep(dataclasses.replace(KEY, body=f"{i}"), FOUND, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(StoreUnusable):
        validations.find(KEY, path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable):
        validations.keep(KEY, FOUND, tmp_path / "file" / "store.sqlite")


def test_a_database_of_a_newer_version_is_not_touched(path):
    validations.keep(KEY, FOUND, path)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 7")
    for act in (lambda: validations.find(KEY, path), lambda: validations.keep(KEY, FOUND, path)):
        with pytest.raises(StoreUnusable, match="version 7"):
            act()


@pytest.mark.parametrize("text", ["{", "[1]", '{"shape": 1}', "null"])
def test_a_row_that_is_no_verdict_is_as_if_it_were_not_there(path, text):
    validations.keep(KEY, FOUND, path)
    with sqlite3.connect(path) as connection:
        connection.execute("update verdicts set verdict = ?", [text])
    assert validations.find(KEY, path) is None


def test_a_look_up_reads_an_index_alone_however_many_verdicts_there_are(path):
    validations.keep(KEY, FOUND, path)
    columns = ("device", "torch", "triton", "version", "driver", "bounds", "precision")
    with database.reading(path) as connection:
        query = validations._NEWEST.format(
            index="verdicts_by_key", more="".join(f" and {name} = ?" for name in columns)
        )
        (step,) = connection.execute(f"explain query plan {query}", (1, KEY.body, *columns)).fetchall()
    assert "USING COVERING INDEX" in step[3] and all(f"{name}=?" in step[3] for name in ("target", "here", *columns))
    assert "TEMP B-TREE" not in step[3]  # the newest is the last of the index


def test_of_many_verdicts_from_before_the_one_with_the_versions_of_now_is_found(path):
    validations.keep(KEY, FOUND, path)
    for day in range(1, 29):
        later = dataclasses.replace(FOUND, validated_at=f"2026-02-{day:02}T00:00:00+00:00")
        validations.keep(dataclasses.replace(KEY, torch="2.10.0"), later, path)
    environments.keep_devices(["python"], [schema.to_json(DEVICE)], path)
    assert validations.look_up(["python"], "auto", KEY.fingerprint, KEY.body, "trust", path) == Known(FOUND)


def place(tmp_path):
    return tmp_path / "norm.py", tmp_path, "Norm"


def known(tmp_path, source, fingerprint=made.KEY.fingerprint, **other):
    key = dataclasses.replace(made.KEY, body=kernel_file.body_hash(source), fingerprint=fingerprint, **other)
    return validations.known_of(key, tmp_path / "store.sqlite", source, place(tmp_path))


WRITTEN = "from a import f\nfrom b import f\n\nclass K:\n    '''What.\n      More.'''\n    x = f(1,2)\n"
FORMATTED = 'from a import f\nfrom b import f\n\n\nclass K:\n    """What.\n    More."""\n\n    x = f(1, 2)  # why\n'


def test_a_formatted_body_keeps_its_validation(tmp_path):
    store = tmp_path / "store.sqlite"
    made.keep(store, made.found(), *place(tmp_path)[:2], source="# another\n")
    made.keep(store, made.found(day=2), *place(tmp_path)[:2], source=WRITTEN)
    assert known(tmp_path, FORMATTED) == Known(made.found(day=2))
    before = known(tmp_path, FORMATTED, torch="2.13.0")
    assert (before.before, before.changed) == (made.found(day=2), "with torch 2.11.0 before; now 2.13.0")
    environments.keep_devices(["python"], [schema.to_json(made.DEVICE)], store)
    asked = ["python"], "auto", made.KEY.fingerprint, kernel_file.body_hash(FORMATTED), "trust", store
    assert validations.look_up(*asked, source=FORMATTED) == Known(made.found(day=2))
    made.keep(store, made.found(day=1, status="wrong"), *place(tmp_path)[:2], source=FORMATTED)
    assert known(tmp_path, FORMATTED).valid.verdict.status == "wrong"  # what was found for this very text


@pytest.mark.parametrize("source", [WRITTEN.replace("1,2", "2,1"), "\n".join(reversed(WRITTEN.split("\n", 2))), "f(:"])
def test_another_syntax_tree_is_another_kernel(tmp_path, source):
    made.keep(tmp_path / "store.sqlite", made.found(), *place(tmp_path)[:2], source=WRITTEN)
    assert known(tmp_path, source) == Known()
    swapped = WRITTEN.replace("from a import f\nfrom b import f", "from b import f\nfrom a import f")
    assert known(tmp_path, swapped) == Known()  # the last import of a name is the one that is used


@pytest.mark.parametrize("reads", ["K.__doc__", "f.__code__.co_firstlineno", "getattr(K, '__do' + 'c__')"])
def test_code_that_may_read_its_own_text_is_validated_again(tmp_path, reads):
    made.keep(tmp_path / "store.sqlite", made.found(), *place(tmp_path)[:2], source=WRITTEN + f"y = {reads}\n")
    assert known(tmp_path, WRITTEN + f"y = {reads}\n") == Known(made.found())
    assert known(tmp_path, FORMATTED + f"y = {reads}\n") == Known()


def test_what_an_earlier_text_of_the_class_was_validated_with_is_told_apart(tmp_path):
    store = tmp_path / "store.sqlite"
    made.keep(store, made.found(), *place(tmp_path)[:2], source=WRITTEN)
    made.keep(store, made.found(day=2), tmp_path / "other.py", tmp_path, source=WRITTEN, fingerprint="sha256:third")
    for source in (WRITTEN, FORMATTED):
        assert known(tmp_path, source, fingerprint="sha256:edited") == Known(earlier=made.found())
    assert known(tmp_path, "# another\n", fingerprint="sha256:edited") == Known()

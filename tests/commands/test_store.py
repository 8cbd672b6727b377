"""``kernel-lsp store`` and ``history`` as a user runs them: tables, one JSON document, exit status, pages."""

import json
import re

import pytest

from kernel_lsp import cli
from kernel_lsp.store import history, migrations
from tests.store.made import found, keep


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a store of its own: two verdicts on one class, one on another."""
    project = tmp_path / "project"
    (project / "pkg").mkdir(parents=True)
    (project / "pyproject.toml").write_text('[tool.kernel-lsp]\nstore = "data/kernels.sqlite"\n')
    (project / "pkg" / "norm.py").write_text("")
    monkeypatch.delenv("KERNEL_LSP_STORE", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)  # as xdist sets it
    monkeypatch.chdir(project)
    store, file = project / "data" / "kernels.sqlite", project / "pkg" / "norm.py"
    keep(store, found(1), file, project)
    keep(store, found(2, kernel=25.0), file, project, torch="2.13.0", source="# b\n")
    keep(store, found(3, "wrong", reason="off by 3"), file, project, class_name="Other")
    return project


@pytest.fixture
def run(capsys):
    """Run a command: its exit status, and what it said on both streams."""

    def run(*arguments):
        status = cli.main(list(map(str, arguments)))
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_history_of_a_class_is_a_table_over_time(project, run):
    status, out, _ = run("history", "pkg/norm.py::Norm")
    assert status == 0
    out = " ".join(out.split())
    first, second = re.findall(r"2026-01-0.*?(?= 2026|$)", out)
    assert "2.00× / 1.50×" in first and "Test GPU, torch 2.11.0, triton 3.6.0" in first
    assert "4.00× / 3.00×" in second and "kernel, torch 2.11.0 → 2.13.0" in second
    assert "1.0e-07 (2.0e-07)" in second and "1 of 1" in second
    assert "Other" not in out


def test_history_of_a_folder_and_what_is_not_there(project, run):
    status, out, _ = run("history")
    assert status == 0 and "pkg/norm.py::Norm" in out and "pkg/norm.py::Other" in out
    assert "off by 3" in " ".join(out.split())
    assert run("history", "pkg")[1] == run("history", project)[1] == out
    (project / "pkg" / "norm.py").write_text("class Unknown:\n    pass\n")
    status, out, err = run("history", "pkg/norm.py::Unknown")
    assert (status, out) == (0, "") and "No validation of pkg/norm.py::Unknown is in the store" in err
    assert "`kernel-lsp generate pkg/norm.py::Unknown`" in err
    status, out, err = run("history", "pkg/norm.py::Missing")
    assert (status, out) == (2, "") and "No class Missing in pkg/norm.py" in err
    assert run("history", "pkg/norm.py::Norm")[0] == 0  # it was validated, and is no longer in the file
    status, out, err = run("history", "pkg/nrom.py::Norm")
    assert (status, out) == (2, "") and "did you mean pkg/norm.py::Norm?" in err


def test_history_as_one_document(project, run):
    status, out, _ = run("history", "pkg", "--json", "--last", "1")
    document = json.loads(out)
    assert status == 0 and set(document) == {"store", "classes"}
    norm, other = document["classes"]
    assert norm["class_name"] == "Norm" and norm["earlier"] is True and other["earlier"] is False
    (entry,) = norm["entries"]
    assert set(entry) == set(history.Entry.__dataclass_fields__)
    assert entry["changed"][1] == {"what": "torch", "before": "2.11.0", "now": "2.13.0"}
    assert json.loads(run("history", "nowhere", "--json")[1])["classes"] == []


def test_history_as_a_page(project, run, tmp_path):
    page = tmp_path / "history.html"
    assert run("history", "--html", page, "--svg", tmp_path / "history.svg")[0] == 0
    text = page.read_text()
    assert "Speedup" in text and text.count('class="curve kernel"') == 2  # of speed and of error
    assert "kernel, torch 2.11.0 → 2.13.0" in text and "off by 3" in text and "<script" not in text
    assert "2.00×" in re.sub(r"<[^>]*>|&#160;", "", (tmp_path / "history.svg").read_text())
    status, _, err = run("history", "--html", project)
    assert status == 2 and str(project) in err


def test_a_history_fits_a_terminal_of_eighty_columns(project, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("history")
    assert status == 0 and max(map(len, out.splitlines())) <= 80
    assert "2.00×" in out and "torch 2.11.0" in " ".join(out.split()) and "eager / compile" in out
    assert "res…" not in out and "speedup over" in out and "error (eager" not in out


def test_info_names_the_file_of_the_setting_and_the_environment_wins(project, run, monkeypatch, tmp_path):
    found = json.loads(run("store", "info", "--json")[1])
    assert found["path"] == str(project / "data" / "kernels.sqlite")
    assert found["rows"]["verdicts"] == 3 and found["version"] == migrations.VERSION and found["bytes"] > 0
    assert found["oldest"] == "2026-01-01T03:04:05+00:00"
    assert "verdicts             3\n" in run("store", "info")[1]
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "other.sqlite"))
    status, out, _ = run("store", "info")
    assert status == 0 and "other.sqlite" in out and "nothing was validated" in out
    assert json.loads(run("store", "info", "--json")[1])["rows"] == {}


@pytest.mark.parametrize("by", ["setting", "environment"])
def test_without_a_store_every_action_says_how_to_get_one(project, run, monkeypatch, by):
    if by == "setting":
        (project / "pyproject.toml").write_text('[tool.kernel-lsp]\nstore = "none"\n')
    else:
        monkeypatch.setenv("KERNEL_LSP_STORE", "")
    for arguments in (["history"], ["store", "info"], ["store", "export", "x"], ["store", "prune", "--keep", "1"]):
        status, out, err = run(*arguments, "--json")
        assert status == 2 and json.loads(out)["error"]["code"] == "StoreOff" and "No store is in use" in err


def test_a_store_that_is_damaged_is_said(project, run):
    (project / "data" / "kernels.sqlite").write_bytes(b"somebody's file" * 1000)
    for arguments in (["history"], ["store", "info"], ["store", "prune", "--keep", "1"]):
        status, out, _ = run(*arguments, "--json")
        assert status == 2 and json.loads(out)["error"]["code"] == "StoreUnusable"


def test_export_import_and_prune(project, run, monkeypatch, tmp_path):
    file = tmp_path / "export.jsonl"
    assert run("store", "export", file)[:2] == (0, f"{file}: 3 verdicts and 2 kernels.\n")
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "other.sqlite"))
    status, out, err = run("store", "import", file)
    assert (status, out, err) == (0, "3 verdicts and 2 kernels are new; 0 were known.\n", "")
    assert "* imported, reached on another machine" in run("history")[1]
    with file.open("a") as lines:
        lines.write("{\n")
    status, out, err = run("store", "import", file, "--json")
    document = json.loads(out)
    assert status == 1 and document["verdicts"] == 0 and document["known"] == 5
    assert document["damaged"][0]["where"]["line"] == 7 and "Line 7 of" in err
    status, out, _ = run("store", "prune", "--keep", 1)
    assert status == 0 and out == "Removed 1 verdicts, 0 kernels and 0 kept times.\n"
    assert run("store", "import", tmp_path / "none")[0] == 2


def test_prune_removes_nothing_that_was_not_asked_for(project, run):
    status, out, _ = run("store", "prune", "--json")
    assert status == 2 and "--older-than" in json.loads(out)["error"]["message"]
    for wrong in ("-1", "soon", "nan"):
        with pytest.raises(SystemExit) as ended:
            run("store", "prune", "--older-than", wrong)
        assert ended.value.code == 2

"""Pairs of a module and its kernel: whose they are, and that they are what was validated."""

import json
import subprocess

import pytest

from kernel_lsp import cli
from kernel_lsp.analysis import fingerprint
from kernel_lsp.commands import kernelbook
from kernel_lsp.store import exporting, importing
from tests.store.made import BODY, found, keep

NORM = "import torch\n\n\nclass Norm(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
FIELDS = {
    *("repo_name", "module_name", "entry_point", "python_code", "pytorch_code", "triton_code", "original_triton_code"),
    *("synthetic", "uuid", "licenses", "stars", "sha", "repo_link", "kernel_lsp"),
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(path))
    return path


@pytest.fixture
def validated(store, tmp_path):
    """A file whose class was validated."""

    def validated(name, root="project", text=NORM, **other):
        file = tmp_path / root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        mark = fingerprint(text, file, "Norm")
        keep(
            store,
            found(other.pop("day", 1), other.pop("status", "ok")),
            file,
            tmp_path / root,
            fingerprint=mark,
            **other,
        )
        return file

    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text('[project]\nname = "p"\nlicense = "Apache-2.0"\n')
    return validated


def test_a_pair_has_the_fields_of_kernelbook(store, validated, tmp_path, capsys):
    file = validated("pkg/norm.py")
    validated("pkg/norm.py", day=2, device="Other GPU")  # the same pair
    project = tmp_path / "project"
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
        ["remote", "add", "origin", "https://me:secret@example.org/me/project.git"],
    ):
        subprocess.run(["git", "-C", str(project), *command], check=True)
    out = tmp_path / "book.jsonl"
    assert cli.main(["store", "export", str(out), "--format", "kernelbook", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "pairs": 1}
    assert "secret" not in out.read_text() and str(tmp_path) not in out.read_text()
    (line,) = map(json.loads, out.read_text().splitlines())
    assert {*line} == FIELDS
    assert line["python_code"] == line["pytorch_code"] == file.read_text()
    assert line["triton_code"] == line["original_triton_code"] == BODY
    assert (line["repo_name"], line["module_name"], line["licenses"]) == ("project", "Norm", ["Apache-2.0"])
    assert line["repo_link"] == "https://example.org/me/project.git" and len(line["sha"]) == 40
    assert (line["kernel_lsp"]["file"], line["kernel_lsp"]["over_eager"]) == ("pkg/norm.py", 2.0)
    assert isinstance(line["uuid"], int) and line["uuid"] < 2**53


def test_only_what_is_as_it_was_validated(store, validated):
    file = validated("norm.py")
    validated("wrong.py", text=NORM.replace("1", "3"), status="wrong")
    validated("gone.py", text=NORM.replace("1", "2")).unlink()
    assert [line["kernel_lsp"]["file"] for line in kernelbook.lines(store)] == ["norm.py"]
    file.write_text(NORM.replace("+ 1", "+ 2"))
    assert [*kernelbook.lines(store)] == []


@pytest.mark.parametrize(("elsewhere", "there"), [("ok", 1), ("slower", 1), ("wrong", 0), ("crashed", 0)])
def test_a_pair_is_correct_on_every_device(store, validated, elsewhere, there):
    validated("norm.py", day=2)
    validated("norm.py", day=1, device="Other GPU", status=elsewhere)
    assert len([*kernelbook.lines(store)]) == there
    validated("norm.py", day=3, device="Other GPU")  # the newest there counts
    assert len([*kernelbook.lines(store)]) == 1


@pytest.mark.parametrize("status", ["timeout", "out-of-memory"])
def test_what_ran_out_of_time_or_memory_says_nothing_of_a_pair(store, validated, status):
    validated("norm.py", day=1)
    validated("norm.py", day=2, status=status)
    validated("norm.py", day=2, device="Other GPU", status=status)
    (line,) = kernelbook.lines(store)
    assert line["kernel_lsp"]["validated_at"].startswith("2026-01-01")
    validated("norm.py", day=3, device="Other GPU", status="wrong")
    validated("norm.py", day=4, device="Other GPU", status=status)  # and does not make it right again
    assert [*kernelbook.lines(store)] == []


@pytest.mark.parametrize(
    ("trust", "check", "bounds"),
    [("ok", "wrong", "trust"), ("ok", "ok", "check"), ("wrong", "ok", None), ("wrong", "wrong", None)],
)
def test_each_setting_of_bounds_has_a_verdict_and_the_looser_one_counts_for_both(
    store, validated, trust, check, bounds
):
    validated("norm.py", day=1, status=trust)
    validated("norm.py", day=2, status=check, bounds="check")
    assert [line["kernel_lsp"]["bounds"] for line in kernelbook.lines(store)] == ([bounds] if bounds else [])


def test_what_was_asked_for_at_a_lower_precision_is_no_pair(store, validated):
    validated("norm.py", day=1, precision="half")
    assert [*kernelbook.lines(store)] == []
    validated("norm.py", day=2)
    validated("norm.py", day=3, precision="half", status="wrong")
    assert len([*kernelbook.lines(store)]) == 1


def test_a_copy_of_the_class_and_an_import_tell_against_a_pair(store, validated, tmp_path):
    validated("norm.py", day=1)
    validated("copy.py", day=2, device="Other GPU", status="wrong")
    assert [*kernelbook.lines(store)] == []
    exporting.export(store, tmp_path / "theirs.jsonl")
    store.unlink()
    validated("norm.py", day=1)
    assert len([*kernelbook.lines(store)]) == 1
    importing.take(store, tmp_path / "theirs.jsonl")
    assert [*kernelbook.lines(store)] == []


def test_only_files_of_the_users_own_projects(store, validated, tmp_path):
    validated(".venv/lib/python3.11/site-packages/layers/norm.py")
    validated("norm.py", root="alone")  # no project
    assert [*kernelbook.lines(store)] == []
    (tmp_path / "link").symlink_to(tmp_path / "project" / ".venv" / "lib" / "python3.11" / "site-packages" / "layers")
    (tmp_path / "setup.py").write_text("")
    assert kernelbook.owned_root(tmp_path / "link" / "norm.py") is None
    assert kernelbook.owned_root(tmp_path / "alone" / "norm.py") == tmp_path
    assert [line["repo_name"] for line in kernelbook.lines(store)] == [tmp_path.name]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("git@example.org:me/x.git", "example.org:me/x.git"),
        ("ssh://git@example.org:22/me/x", "ssh://example.org:22/me/x"),
        ("/home/me/x.git", "x.git"),
        ("file:///home/me/x.git", "x.git"),
    ],
)
def test_an_address_tells_no_secret_and_no_folder(address, shown):
    assert kernelbook._without_secrets(address) == shown


def test_the_licence_file_where_pyproject_says_nothing(tmp_path):
    (tmp_path / "LICENSE").write_text("\nMIT License\n\nCopyright\n")
    assert kernelbook.origin_of(tmp_path).licences == ["MIT License"]
    (tmp_path / "pyproject.toml").write_text('[project]\nlicense = {file = "LICENSE"}\n')
    assert kernelbook.origin_of(tmp_path).licences == ["MIT License"]
    (tmp_path / "LICENSE").unlink()
    (tmp_path / "pyproject.toml").write_text("not = toml = at all")
    assert kernelbook.origin_of(tmp_path).licences == []

"""``kernel-lsp generate --html FILE``: the page beside the table or the JSON, and what happens where it cannot be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp import errors, kernel_file
from kernel_lsp.commands import html
from kernel_lsp.commands.run_jobs import Task
from tests import nursery

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*nursery.CLI, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "samples" / "softmax.py", tmp_path))


@pytest.mark.slow
def test_a_page_beside_json(softmax: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    target = f"{softmax}::TemperatureSoftmax"
    done = run("generate", target, "--json", "--device", "interpreter", "--html", page)
    assert done.returncode == 0, done.stderr
    document, text = json.loads(done.stdout), page.read_text("utf-8")
    assert document["error"] is None
    assert "Correct under Triton’s interpreter; not timed" in text and "TemperatureSoftmaxTriton" in text
    kernel = kernel_file.read(Path(document["file"]))
    assert document["file"] in text and f'data-n="{kernel.body_line + 1}"' in text
    assert "no CUDA GPU" in text
    first = softmax.read_text().splitlines().index("class TemperatureSoftmax(nn.Module):") + 1
    assert f'data-n="{first}"><i class="k">class</i>' in text


@pytest.mark.slow
def test_several_with_one_that_failed(softmax: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "samples" / "sorted_unique.py", tmp_path)
    page = tmp_path / "page.html"
    done = run("generate", tmp_path, "--no-write", "--device", "interpreter", "--html", page)
    assert done.returncode == 1, done.stderr
    text = page.read_text("utf-8")
    assert "1 of 2 are correct." in text and 'href="#report-1"' in text
    assert "SortedUnique cannot be written in Triton yet" in text


def test_a_class_that_was_skipped_is_no_failure_in_the_page(tmp_path: Path) -> None:
    module = "from torch import nn\n\nclass Bare(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    (tmp_path / "no_inputs.py").write_text(module)
    page = tmp_path / "page.html"
    done = run("generate", tmp_path, "--device", "interpreter", "--html", page)
    assert "skipped, since it has no example inputs" in done.stdout
    text = page.read_text("utf-8")
    assert "Skipped." in text and "No kernel." not in text and "✗" not in text


def test_a_class_that_is_not_there_has_a_page_that_says_so(softmax: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("generate", f"{softmax}::Nothing", "--html", page)
    assert done.returncode == 2, done.stderr
    assert "No class Nothing in" in page.read_text("utf-8")


@pytest.mark.parametrize("as_json", [False, True])
def test_where_it_cannot_be_written_nothing_is_begun(softmax: Path, tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "file").touch()
    page = tmp_path / "file" / "page.html"
    done = run("generate", f"{softmax}::TemperatureSoftmax", "--html", page, *(["--json"] if as_json else []))
    assert done.returncode == 2
    assert f"The report could not be written to {page}" in done.stderr
    assert not (tmp_path / "kernels").exists()
    if as_json:
        assert json.loads(done.stdout)["error"]["code"] == "ReportNotWritten"
    else:
        assert done.stdout == ""


def test_the_question_leaves_no_trace(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    html.check(page)
    assert not page.exists()
    page.write_text("before")
    stamp = os.stat(page).st_mtime_ns
    html.check(page)
    assert page.read_text() == "before" and os.stat(page).st_mtime_ns == stamp
    with pytest.raises(errors.ReportNotWritten):
        html.check(tmp_path)


def test_what_was_not_reached_is_said(tmp_path: Path) -> None:
    html.write(tmp_path / "page.html", [Task("a.py::A", None)])
    assert "the command was interrupted" in (tmp_path / "page.html").read_text("utf-8")


FULL = """
import resource, signal, sys
from pathlib import Path
from kernel_lsp.commands import html
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    html.write_text(Path(sys.argv[1]), "the page of now")
except html.ReportNotWritten as error:
    print(error)
"""


def test_where_the_disk_is_full_the_page_from_before_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("the page of then")
    done = subprocess.run([sys.executable, "-c", FULL, str(page)], capture_output=True, text=True, check=True)
    assert "page.html" in done.stdout and page.read_text() == "the page of then"
    assert [*tmp_path.iterdir()] == [page]


def test_a_link_stays_one_and_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("then")
    page.chmod(0o640)
    link.symlink_to(page)
    html.write_text(link, "now")
    assert link.is_symlink() and page.read_text() == "now" and page.stat().st_mode & 0o777 == 0o640
    html.write_text(Path("/dev/null"), "now")
    assert Path("/dev/null").is_char_device()

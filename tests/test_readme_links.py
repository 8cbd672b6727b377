"""The README as PyPI shows it: links made absolute when the wheel is built."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BASE, IMAGES = "https://git.example/kernel-lsp/blob/v1", "https://git.example/kernel-lsp/raw/v1"


def rewritten(readme: Path, *bases: str) -> str:
    subprocess.run([sys.executable, ROOT / "tools" / "readme_links.py", readme, *bases], check=True)
    return readme.read_text("utf-8")


def test_links_and_images_are_made_absolute_and_what_is_no_link_stays(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    text = (
        "[a](docs/a.md#part) ![b [c]](./docs/b.svg) [d](https://d.example) [e](#use-it) [m](mailto:x@d.example)\n"
        "[![f](docs/f.svg)](docs/f.md)\n```\nx = y[0](z.md)\n```\n`.[worker]`\n\n[over two\nlines](docs/g.md)\n"
    )
    readme.write_text(text)
    assert rewritten(readme, BASE, IMAGES) == (
        f"[a]({BASE}/docs/a.md#part) ![b [c]]({IMAGES}/docs/b.svg) [d](https://d.example) [e](#use-it) [m](mailto:x@d.example)\n"
        f"[![f]({IMAGES}/docs/f.svg)]({BASE}/docs/f.md)\n```\nx = y[0](z.md)\n```\n`.[worker]`\n\n"
        f"[over two\nlines]({BASE}/docs/g.md)\n"
    )


def test_the_check_of_a_wheel_finds_relative_links_in_the_readme_of_this_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from check_wheel import problems  # a tool, not of the package

    project = {"name": "n", "requires-python": ">=3.11", "license": "MIT", "classifiers": []}
    names = {"kernel_lsp/py.typed", "n-1.dist-info/licenses/LICENSE"}
    head = "Name: n\nRequires-Python: >=3.11\nLicense-Expression: MIT\n\n"
    readme = tmp_path / "README.md"
    readme.write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")
    found = problems(names, head + readme.read_text("utf-8"), {"kernel_lsp/py.typed"}, project, absolute=True)
    assert "the description has a relative link: docs/images/vscode-report.png" in found
    text = rewritten(readme, BASE)
    assert problems(names, head + text, {"kernel_lsp/py.typed"}, project, absolute=True) == []
    assert f"]({BASE}/docs/editors.md)" in text

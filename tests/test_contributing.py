"""CONTRIBUTING.md names files, functions and targets of make: all of them are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["CONTRIBUTING.md", "SECURITY.md"]
#: the folders that pages name paths in
FOLDERS = ("kernel_lsp/", "tests/", "docs/", "tools/", "samples/", "vscode-extension/")


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_files_and_the_names_in_them_are_there(page: str) -> None:
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL))
    named = [re.fullmatch(r"([\w./-]+)(?:: (\w+))?", words) for words in quoted]
    places = [(m[1], m[2]) for m in named if m and m[1].startswith(FOLDERS)]
    assert places
    for path, name in places:
        assert (ROOT / path).exists(), path
        if name is not None:
            defined = rf"^(?:async def|def|class) {name}\b|^{name}\b.*?="
            assert re.search(defined, (ROOT / path).read_text("utf-8"), re.MULTILINE), f"{path}: {name}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_name_what_is_there(page: str) -> None:
    text = text_of(page)
    for path in re.findall(
        r"(?:-m pytest|-m \"slow or not slow\"|kernel-lsp explain) [^`\n]*?((?:tests|samples)/[\w/.]+)", text
    ):
        assert (ROOT / path).exists(), path
    targets = re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE):
        assert target in targets, target


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for path, heading in re.findall(r"\]\(([\w./-]+)(?:#([\w-]+))?\)", text_of(page)):
        headings = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in headings]
        assert not heading or heading in anchors, f"{path}#{heading}"

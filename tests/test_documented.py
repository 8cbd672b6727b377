"""What the README and the pages in docs/ show to be typed: commands that the command line takes, and Python that runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from kernel_lsp import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *("README.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))),
]
#: a line of a block, fenced or indented, that runs the program; also after a prompt, in an environment, as a workflow's step
LINE = re.compile(r"^ *(?:\$ |run: )?(?:\S*/)?kernel-lsp [a-z-].*$", re.MULTILINE)
QUOTED = re.compile(r"`(kernel-lsp [a-z-][^`\n]*)`")


def commands(page: str) -> list[str]:
    """All that run kernel-lsp: lines of blocks, and those quoted in the text. Forms that leave something out (``…``) are none."""
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```|((?:^ {4}\S.*\n)+)", text, re.DOTALL | re.MULTILINE)
    found = [line for fenced, indented in blocks for line in LINE.findall(fenced or indented)]
    found += QUOTED.findall(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return [command for command in found if "…" not in command]


def words_of(command: str) -> list[str]:
    """The arguments of kernel-lsp in a shell's line, without a comment and what follows ``&&``, ``|`` or ``>``."""
    arguments = re.sub(r"(?<=\s)#.*", "", command.split("kernel-lsp", 1)[1])
    lexer = shlex.shlex(arguments, posix=True, punctuation_chars="|&>;")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    for word in lexer:
        if word[0] in "|&>;":
            break
        words.append(word)
    return words


def refused(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command line says against a command; "" where it takes it."""
    words = words_of(command)
    if words[:1] == ["serve"]:
        assert len(words) == 1 or words[1] in ("--tcp", "--stdio", "--log-level"), command
        return ""
    try:
        cli._parser().parse_args(words)
    except SystemExit as ended:
        return capsys.readouterr().err if ended.code else ""
    return ""


def test_pages_show_commands():
    assert {page for page in PAGES if commands(page)} >= {"README.md", "docs/ci.md", "docs/store.md", "docs/models.md"}
    assert len(commands("README.md")) > 20


@pytest.mark.parametrize("page", PAGES)
def test_the_command_line_takes_what_a_page_shows(page: str, capsys: pytest.CaptureFixture[str]):
    for command in commands(page):
        error = refused(command, capsys)
        # A command is named in the text without its arguments, too.
        assert not error or ("are required" in error and len(words_of(command)) <= 2), f"{command}\n{error}"


def test_targets_of_make_in_the_readme_are_there():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make ([a-z][\w-]*)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(named) > 5 and set(named) <= set(targets)


def snippets() -> list[str]:
    """The blocks of Python in the README."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)


def module_source(snippet: str) -> str:
    """A module of a snippet that has a class of the samples without its body."""
    sample = (ROOT / "samples" / "rms_norm.py").read_text("utf-8")
    found = re.search(r"^class RMSNorm.*?(?=^def )", sample, re.DOTALL | re.MULTILINE)
    assert found is not None
    shown = "class RMSNorm(nn.Module): ...\n"
    assert shown in snippet
    return "import torch\nfrom torch import nn\n\n\n" + snippet.replace(shown, found[0])


def test_example_inputs_in_the_readme_fit_their_class():
    first, several, *_ = snippets()
    module: dict[str, object] = {"__name__": "rms_norm"}
    exec(module_source(first), module)
    with torch.device("meta"):
        norm = module["RMSNorm"](*module["get_init_inputs"]())  # type: ignore[operator]
        inputs = module["get_inputs"]()  # type: ignore[operator]
        assert norm(*inputs).shape == inputs[0].shape
        exec(several, module)
        calls = list(module["get_inputs"]())  # type: ignore[operator]
        for call in calls:
            assert norm.to(call[0].dtype)(*call).dtype == call[0].dtype
        assert [call[0].dtype for call in calls] == [torch.float32, torch.bfloat16]
    assert isinstance(norm, nn.Module)


def test_the_kernel_runs_as_the_readme_calls_it(tmp_path: Path):
    """In the interpreter, on the processor: ``.cuda()`` is left out, and the first two sizes of the example are smaller."""
    first, _, use, *_ = snippets()
    source = module_source(first)
    assert "randn(8, 1024, 4096)" in source
    (tmp_path / "rms_norm.py").write_text(source.replace("randn(8, 1024, 4096)", "randn(2, 4, 4096)"))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    options = ["--generator", "synthesizer", "--device", "interpreter"]
    command = [sys.executable, "-m", "kernel_lsp", "generate", "rms_norm.py::RMSNorm", *options]
    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert ".cuda()" in use and "torch.inference_mode()" in use
    before = "import torch\nx = torch.randn(2, 4, 4096)\n"
    after = "import rms_norm\ntorch.testing.assert_close(y, rms_norm.RMSNorm(4096)(x))\n"
    program = before + use.replace(".cuda()", "") + after
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "None\n"), run.stdout + run.stderr

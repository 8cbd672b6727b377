"""What is written for the samples reads as if by hand: formatted, documented, without unused or generated names."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.errors import NothingToLower
from kernel_lsp.jobs.formatting import LINE_LENGTH, ruff_command
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

SAMPLES = Path(__file__).parents[3] / "samples"
#: A name that only a program would choose: tmp0, buf1, x_12. A digit after a word tells two of a kind apart.
_GENERATED = re.compile(r"(tmp|buf|var|arg|val|node|primals)_?\d*|.*_\d{2,}|[a-z]\d{2,}|at_\d+")


def sample(path: Path) -> tuple[nn.Module, list[Any], str]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (kind,) = (k for k in vars(module).values() if isinstance(k, type) and k.__module__ == path.stem)
    init = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    torch.manual_seed(0)
    return kind(*init).eval(), module.get_inputs(), kind.__name__


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every candidate for every sample, formatted once."""
    folder = tmp_path_factory.mktemp("written")
    for path in sorted(SAMPLES.glob("*.py")):
        module, inputs, name = sample(path)
        try:
            candidates = synthesize(module, capture(module, tuple(inputs)), class_name=name, import_from=path.stem)
        except NothingToLower:
            assert path.stem == "sorted_unique"
            continue
        for number, candidate in enumerate(candidates):
            (folder / f"{path.stem}_{number}.py").write_text(candidate.source)
    ruff("format", folder)
    return folder


def ruff(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    options = ["--isolated", f"--line-length={LINE_LENGTH}", "--target-version=py311", "--no-cache"]
    return subprocess.run(
        [*ruff_command(), arguments[0], *options, *arguments[1:]], capture_output=True, text=True, check=False
    )


def sources(folder: Path) -> list[tuple[str, str]]:
    files = sorted(folder.glob("*.py"))
    assert len(files) > 20
    return [(f.stem, f.read_text()) for f in files]


def test_one_pass_of_the_formatter_settles_it(written: Path) -> None:
    done = ruff("format", "--check", written)
    assert done.returncode == 0, done.stdout


def test_nothing_is_unused_or_undefined(written: Path) -> None:
    done = ruff("check", "--select=F,E7,E9,B,SIM118", "--ignore=B905", written)
    assert done.returncode == 0, done.stdout


def test_no_line_is_longer_than_the_formatter_allows(written: Path) -> None:
    long = [(name, line) for name, text in sources(written) for line in text.splitlines() if len(line) > LINE_LENGTH]
    assert not long, long


def test_the_docstring_gives_formula_and_bytes(written: Path) -> None:
    for name, text in sources(written):
        docstring = ast.get_docstring(ast.parse(text))
        assert docstring is not None, name
        assert re.search(r"^    \w+ = .+", docstring, re.MULTILINE), docstring
        assert re.search(
            r"at\s+least\s+[\d.]+\s+(bytes|kB|MB|GB)\s+are\s+read\s.*\sand\s+[\d.]+\s+(bytes|kB|MB|GB)\s+written\.",
            docstring,
            re.DOTALL,
        )


def test_functions_say_what_they_do(written: Path) -> None:
    for name, text in sources(written):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node.name != "forward"):
                assert ast.get_docstring(node), (name, node.name)


def test_no_name_looks_generated(written: Path) -> None:
    for name, text in sources(written):
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        names |= {node.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arg)}
        generated = sorted(n for n in names if _GENERATED.fullmatch(n))
        assert not generated, (name, generated)


def test_numbers_are_passed_to_kernels_by_name(written: Path) -> None:
    for name, text in sources(written):
        tree = ast.parse(text)
        kernels = {
            node.name: sum(not argument.arg.endswith("_ptr") for argument in node.args.args)
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list)
        }
        for call in ast.walk(tree):
            launched = isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript)
            if launched and ast.unparse(call.func.value) in kernels:
                wanted = kernels[ast.unparse(call.func.value)]
                options = {"num_warps", "num_stages", "launch_cooperative_grid"}
                assert len({keyword.arg for keyword in call.keywords} - options) == wanted, (name, ast.unparse(call))


class Sized(nn.Module):
    """Computes with two of its sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, rows, columns = x.shape
        return x.transpose(1, 2).softmax(-1) * rows + columns


def test_a_formula_names_the_sizes_that_are_computed_with() -> None:
    inputs = (torch.randn(3, 20, 40),)
    text = synthesize(Sized(), capture(Sized(), inputs), class_name="Sized", import_from="sized")[0].source
    assert "softmax(x.permute(0, 2, 1), dim=2) * x.shape[1] + x.shape[2]" in text

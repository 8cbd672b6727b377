import pytest

from kernel_lsp.errors import FormatterFailed
from kernel_lsp.jobs.formatting import format_source


async def test_formats_with_its_own_options_whatever_the_project_says(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.ruff]\nline-length = 40\n[tool.ruff.format]\nquote-style='single'\n"
    )
    monkeypatch.chdir(tmp_path)
    source = "x = dict(a=1,b='two',   c=3, d=4, e=5, f=6)\n"
    assert await format_source(source) == 'x = dict(a=1, b="two", c=3, d=4, e=5, f=6)\n'


async def test_formatted_source_stays_as_it_is_under_a_header():
    from kernel_lsp import kernel_file

    body = await format_source('"""Doc."""\nimport torch\nclass A:\n  x=1\n')
    text = kernel_file.assemble({"source": "a.py::A", "verdict": {"status": "ok"}}, body)
    assert await format_source(text) == text


async def test_what_does_not_parse_is_said_to_be_so():
    with pytest.raises(FormatterFailed, match="parse"):
        await format_source("def f(:\n")


SOURCE = """import torch
import triton
from a import A

x = {"one": 1, "two": 2, "three": torch.ones(3), "four": 4, "five": triton.cdiv(A, 5), "six": 6}
"""
WIDE = SOURCE
NARROW = SOURCE.replace("{", "{\n    ").replace(", ", ",\n    ").replace("(A,\n    5)", "(A, 5)").replace("}", ",\n}")


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("pyproject.toml", "[project]\nname = 'p'\n", WIDE),
        ("pyproject.toml", "[tool.ruff]\nline-length = 60\n", NARROW),
        ("pyproject.toml", "[tool.black]\nline-length = 60\n", NARROW),
        ("pyproject.toml", "[tool.black]\nline-length = 'long'\n", WIDE),
        ("pyproject.toml", "[tool.black]\nskip-string-normalization = true\nline-length = 120\n", WIDE),
        ("ruff.toml", "line-length = 120\n[format]\nquote-style = 'single'\n", WIDE.replace('"', "'")),
        (".ruff.toml", "line-length = 120\n[lint]\nselect = ['F', 'I']\n", "from a import A\n"),
        ("ruff.toml", "line-length = 'long'\n", WIDE),
        ("pyproject.toml", "[tool.ruff\n", WIDE),
    ],
)
async def test_the_users_own_formatter_is_respected(tmp_path, file, text, expected):
    (tmp_path / file).write_text(text)
    if "select" in text:  # a is a module of the project: isort's own sections
        (tmp_path / "kernels").mkdir()
        (tmp_path / "a.py").touch()
        found = await format_source(SOURCE, tmp_path / "kernels" / "a_triton.py")
        assert found.index("import torch") < found.index("import triton") < found.index(expected)
        assert "\n\nfrom a import A\n" in found
        assert await format_source(found, tmp_path / "kernels" / "a_triton.py") == found
    else:
        assert await format_source(SOURCE, tmp_path / "kernels" / "a_triton.py") == expected


async def test_the_nearest_configuration_counts(tmp_path):
    (tmp_path / "ruff.toml").write_text("line-length = 60\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.black]\nline-length = 120\n")
    assert await format_source(SOURCE, inner / "a_triton.py") == WIDE
    assert await format_source(SOURCE, tmp_path / "a_triton.py") == NARROW


IMPORTS = """import torch
import triton
from a import A, B

x = A, B, torch, triton
"""
#: isort's settings in a file, and the order of imports that they give
ORDERS = {
    "its own order": (
        "pyproject.toml",
        "[tool.isort]\nprofile = 'black'\n",
        ["import torch", "import triton", "", "from a import A, B"],
    ),
    "a line for each name": (
        "pyproject.toml",
        "[tool.isort]\nforce_single_line = true\n",
        ["import torch", "import triton", "", "from a import A", "from a import B"],
    ),
    "sections that the user names": (
        ".isort.cfg",
        "[settings]\nknown_first_party = triton,\n  other\nlines_after_imports = 2\n",
        ["import torch", "", "import triton", "from a import A, B", "", ""],
    ),
    "one section, by names": (
        "pyproject.toml",
        "[tool.isort]\nno_sections = true\nforce_sort_within_sections = true\n[tool.black]\nline-length = 60\n",
        ["from a import A, B", "import torch", "import triton"],
    ),
    "what cannot be": (
        "pyproject.toml",
        "[tool.isort]\nlines_after_imports = 'many'\nforce_single_line = 'perhaps'\nnothing_known = 1\n",
        ["import torch", "import triton", "", "from a import A, B"],
    ),
}


async def test_a_formatter_above_counts_where_isorts_settings_are_nearer(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".isort.cfg").write_text("[settings]\nforce_single_line = true\n")
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n")
    found = await format_source(SOURCE, inner / "a_triton.py")
    assert found.startswith("import torch\nimport triton\nfrom a import A\n") and '    "one": 1,\n' in found
    (tmp_path / "ruff.toml").write_text("line-length = 120\n")
    assert await format_source(SOURCE, inner / "a_triton.py") == WIDE


async def test_odd_folders_and_sections_leave_a_file_that_is_formatted(tmp_path):
    folder = tmp_path / "odd [folder 😀"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.isort]\nforce_single_line = true\n")
    found = await format_source(IMPORTS, folder / "a_triton.py")
    assert "from a import A\nfrom a import B\n" in found
    (folder / "pyproject.toml").write_text("[tool.isort]\nknown_first_party = ['a[b']\n")
    assert await format_source(IMPORTS, folder / "a_triton.py") == IMPORTS


@pytest.mark.parametrize("name", ORDERS)
async def test_imports_are_in_the_order_that_isort_gives_them(tmp_path, name):
    file, text, lines = ORDERS[name]
    (tmp_path / file).write_text(text)
    (tmp_path / "a.py").touch()
    (tmp_path / "kernels").mkdir()
    found = await format_source(IMPORTS, tmp_path / "kernels" / "a_triton.py")
    assert found.splitlines()[: len(lines) + 1] == [*lines, "x = A, B, torch, triton" if not lines[-1] else ""]

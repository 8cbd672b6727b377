"""Settings: where they come from, which wins, and what is said about bad ones."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.settings import Settings, camel, kebab, load, options
from kernel_lsp.settings.sections import sections

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def project(tmp_path):
    """Write a pyproject.toml and return a source file two folders below it."""

    def write(text: str) -> Path:
        (tmp_path / "pyproject.toml").write_text(text)
        source = tmp_path / "model" / "norm" / "rms.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        return source

    return write


def test_defaults_where_nothing_is_given(tmp_path):
    settings, problems = load(tmp_path / "x.py")
    assert not problems
    assert settings.kernel_folder == "kernels"
    assert settings.generators == []  # every one that can run here
    assert settings.interpreter_command() == [sys.executable]


def test_command_line_wins_over_editor_over_pyproject(project):
    path = project('[tool.kernel-lsp]\nseconds = 1\nsamples = 1\nkernel-folder = "one"\n')
    editor = {"seconds": 2, "samples": 2}
    settings, problems = load(path, editor, {"seconds": 3.0, "samples": None})
    assert not problems
    assert (settings.seconds, settings.samples, settings.kernel_folder) == (3.0, 2, "one")


def test_the_nearest_pyproject_counts(project, tmp_path):
    path = project("[tool.kernel-lsp]\nsamples = 3\n")
    (tmp_path / "model" / "pyproject.toml").write_text("[tool.kernel-lsp]\nsamples = 4\n")
    settings, _ = load(path)
    assert settings.samples == 4
    assert settings.root == tmp_path / "model"


def test_a_change_of_pyproject_is_seen(project, tmp_path):
    path = project("[tool.kernel-lsp]\nsamples = 3\n")
    assert load(path)[0].samples == 3
    (tmp_path / "pyproject.toml").write_text("[tool.kernel-lsp]\nsamples = 14\n")
    assert load(path)[0].samples == 14


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("seconds = 0", "more than zero"),
        ("seconds = true", "a number"),
        ("samples = 2.5", "a whole number"),
        ('device = "tpu"', "cuda:N"),
        ('worker-prefix = "ssh box"', "a list of strings"),
        ("validate-on-save = 1", "true or false"),
        ("worker_prefix = []", "did you mean worker-prefix?"),
        ('kernel-folder = ""', "empty"),
        ("openai = 1", "a table"),
        ('openai.base-url = "localhost:8000"', "http://"),
        ('openai.baseurl = "http://x"', "did you mean openai.base-url?"),
        ('kernelllm.dtype = "int4"', "bf16, fp16 or fp32"),
        ("temperature = -1", "negative"),
        ("top-p = 1.5", "at most 1"),
    ],
)
def test_an_invalid_value_keeps_the_default_and_says_why(project, line, says):
    settings, problems = load(project(f"[tool.kernel-lsp]\n{line}\n"))
    (problem,) = problems
    assert isinstance(problem, errors.SettingInvalid)
    assert says in str(problem)
    assert "pyproject.toml" in str(problem)
    assert settings == Settings(root=settings.root)


def test_a_group_of_options_is_a_table_in_pyproject_and_an_object_in_the_editor(project):
    path = project('[tool.kernel-lsp.openai]\nbase-url = "http://box:8000/v1"\nmodel = "a"\nretries = 1\n')
    editor = {"openai": {"model": "b"}, "llamaCpp.context": 4096}
    settings, problems = load(path, editor, {"openai": {"retries": 2}})
    assert not problems
    assert (settings.openai.base_url, settings.openai.model, settings.openai.retries) == ("http://box:8000/v1", "b", 2)
    assert settings.llama_cpp.context == 4096


def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_repeated(project):
    key = "sk-proj-0123456789abcdef"
    settings, problems = load(project(f'[tool.kernel-lsp.openai]\napi-key-env = "{key}"\napi-key = "{key}"\n'))
    assert settings.openai.api_key_env == "OPENAI_API_KEY"
    assert len(problems) == 2
    assert not any(key in str(problem) or key in str(problem.to_json()) for problem in problems)


def test_untrusted_ignores_where_code_and_keys_would_be_sent(project):
    path = project('[tool.kernel-lsp.openai]\nbase-url = "http://evil/v1"\napi-key-env = "SECRET"\nmodel = "m"\n')
    settings, problems = load(path, trusted=False)
    assert not problems
    assert (settings.openai.base_url, settings.openai.api_key_env) == ("", "OPENAI_API_KEY")


def test_an_invalid_value_leaves_the_earlier_one_standing(project):
    settings, problems = load(project("[tool.kernel-lsp]\nsamples = 3\n"), {"samples": "many"})
    assert settings.samples == 3
    assert len(problems) == 1


def test_a_pyproject_that_does_not_parse_is_reported(project):
    settings, problems = load(project("[tool.kernel-lsp\n"))
    assert settings == Settings(root=settings.root)
    assert isinstance(problems[0], errors.ProjectFileInvalid)
    assert "line 1" in str(problems[0])


def test_a_pyproject_whose_tool_is_no_table_is_reported(project):
    settings, problems = load(project("tool = 3\n"))
    assert settings == Settings(root=settings.root)
    assert isinstance(problems[0], errors.ProjectFileInvalid)


def test_unknown_keys_of_the_editor_are_the_clients_own(tmp_path):
    assert load(tmp_path / "x.py", {"trace": {"server": "off"}})[1] == []


def test_untrusted_ignores_what_names_programs(project):
    path = project('[tool.kernel-lsp]\ninterpreter = "/bin/evil"\nsamples = 3\n')
    settings, problems = load(path, {"workerPrefix": ["evil"], "seconds": 7}, trusted=False)
    assert not problems
    assert settings.interpreter_command() == [sys.executable]
    assert (settings.samples, settings.seconds) == (3, 7.0)


def test_inputs_are_found_by_file_and_class(project):
    path = project(
        '[tool.kernel-lsp.inputs."model/norm/rms.py::RMSNorm"]\ninit = [512]\nargs = ["float32[8, 512]"]\n'
        '[tool.kernel-lsp.inputs."model/norm/rms.py::Bad"]\narguments = []\n'
        '[tool.kernel-lsp.inputs."no class"]\nargs = []\n'
    )
    path.write_text("class RMSNorm: ...\n")
    settings, problems = load(path)
    assert settings.inputs_for(path, "RMSNorm") == {"init": [512], "args": ["float32[8, 512]"]}
    assert settings.inputs_for(path, "Bad") is None
    assert settings.inputs_for(path.parent / "other.py", "RMSNorm") is None
    assert ["arguments" in str(p) or "<file>::<Class>" in str(p) for p in problems] == [True, True]


def test_interpreter_is_relative_to_the_project_and_a_prefix_comes_first(project, tmp_path):
    path = project('[tool.kernel-lsp]\ninterpreter = "venv/bin/python"\n')
    assert load(path)[0].interpreter_command() == [str(tmp_path / "venv/bin/python")]
    settings, _ = load(path, {"workerPrefix": ["ssh", "box"]})
    assert settings.interpreter_command() == ["ssh", "box", "venv/bin/python"]


def test_spellings():
    assert (camel("validate_on_save"), kebab("validate_on_save")) == ("validateOnSave", "validate-on-save")
    assert (camel("openai.base_url"), kebab("openai.base_url")) == ("openai.baseUrl", "openai.base-url")


def test_the_reference_pages_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_option_stands_in_one_section():
    shown = [option.name for found in sections().values() for option in found]
    assert sorted(shown) == sorted(option.name for option in options())
    assert len(set(shown)) == len(shown)


def test_docs_and_vs_code_have_the_same_sections_in_the_same_order():
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    package = json.loads((ROOT / "vscode-extension" / "package.json").read_text("utf-8"))
    in_docs = {
        title: re.findall(r"^\| `(kernelLsp\.[\w.]+)`", rows, re.MULTILINE)
        for title, rows in re.findall(r"^## ([^\n]+)\n+(\| editor .*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    }
    configuration = package["contributes"]["configuration"]
    in_vs_code = {section["title"]: list(section["properties"]) for section in configuration}
    assert list(in_docs.items()) == list(in_vs_code.items())
    assert [section["order"] for section in configuration] == list(range(len(configuration)))
    for section in configuration:
        assert [shape["order"] for shape in section["properties"].values()] == list(range(len(section["properties"])))


def test_settings_of_language_models_come_after_all_others():
    titles = list(sections())
    first = titles.index("Language models")
    assert all(title.startswith("Language models") for title in titles[first:])
    groups_shown = {option.group for title in titles[:first] for option in sections()[title]}
    assert groups_shown == {""}


def test_a_user_without_models_sees_ten_settings():
    """All that stands before the section "Advanced" and is not for models, in VS Code with the extension's own, too."""
    package = json.loads((ROOT / "vscode-extension" / "package.json").read_text("utf-8"))
    configuration = package["contributes"]["configuration"]
    titles = [section["title"] for section in configuration]
    advanced = titles.index("Advanced")
    assert titles[advanced + 1] == "Language models"
    seen = [name for section in configuration[:advanced] for name in section["properties"]]
    assert len(seen) == 10
    assert {"kernelLsp.interpreter", "kernelLsp.device", "kernelLsp.validateOnSave"} <= set(seen)


@pytest.mark.parametrize("name", ["kernel_lsp", "kernel-lps", "kernellsp"])
def test_a_table_of_another_name_is_told(project, name):
    settings, problems = load(project(f"[tool.{name}]\nsamples = 3\n[tool.ruff]\nline-length = 99\n"))
    assert settings.samples == 10
    (problem,) = problems
    assert f"[tool.{name}], which nothing reads; did you mean [tool.kernel-lsp]?" in str(problem)


@pytest.mark.parametrize(
    ("table", "line", "says"),
    [
        (
            "model/norm/rms.py::RMSNorm",
            'args = ["flaot32[8, 512]"]',
            "flaot32 is no dtype of torch; did you mean float32?",
        ),
        ("model/norm/rms.py::RMSNorm", 'args = ["quux[8, 512]"]', "quux is no dtype of torch"),
        (
            "model/norm/rms.py::RMSNorm",
            'args = [{ shape = [8, 512], dtype = "float32" }]',
            'a tensor is a text, for instance "float32[8, 512]"',
        ),
        ("model/norm/rms.py::RMSNorm", 'kwargs = { x = "float[8, n]" }', "the sizes must be numbers"),
        ("model/norm/rms.py::RMSNorm", 'args = ["float[8 512]"]', "numbers with commas between them"),
        ("model/norm/rms.py::RMSNorm", 'args = ["float32[8, 512"]', "is no tensor: it is written as float32[8, 512]"),
        ("model/norm/rms.py::RMSNorm", 'args = ["int64(8)"]', "is no tensor: it is written as int64[8, 512]"),
        ("model/norm/rms.py::RMSNorm", 'args = ["int64[8] > 3"]', "is no tensor: it is written as int64[8, 512]"),
        ("model/norm/rms.py::RMSNorm", 'args = [["int64[8] < many"]]', "what follows < must be a number"),
        (
            "model/norm/rms.py::RMSNorm",
            "arg = []",
            "arg is none of init, init-kwargs, args, kwargs, examples; did you mean args?",
        ),
        ("model/norm/rms.py::RMSNorm", "examples = []", "examples must hold a table for each example"),
        ("model/norm/rms.py::RMSNorm", "examples = [[1]]", "examples, number 1: it must be a table"),
        (
            "model/norm/rms.py::RMSNorm",
            "examples = [{args = []}, {kwarg = {}}]",
            "examples, number 2: kwarg is none of args, kwargs; did you mean kwargs?",
        ),
        (
            "model/norm/rms.py::RMSNorm",
            "args = []\nexamples = [{args = []}]",
            "args must stand in the tables of examples, not beside them",
        ),
        ("model/norm/rms.py::RMSNorm", 'examples = [{args = ["flot32[2]"]}]', "did you mean float32?"),
        ("model/norm/rms.py::RMSNrom", "args = []", "has no class RMSNrom; did you mean RMSNorm?"),
        (
            "model/norm/rsm.py::RMSNorm",
            "args = []",
            "there is no file model/norm/rsm.py; did you mean model/norm/rms.py?",
        ),
    ],
)
def test_inputs_of_what_is_not_there_are_told(project, table, line, says):
    path = project(f'[tool.kernel-lsp.inputs."{table}"]\n{line}\n')
    path.write_text("class RMSNorm: ...\n")
    _, problems = load(path)
    (problem,) = problems
    assert says in str(problem) and "pyproject.toml" in str(problem)
    assert f'The setting inputs."{table}" is not valid: ' in str(problem), "the whole table would hide what is wrong"


def test_inputs_of_what_may_be_there_are_not_told(project):
    """Imported classes, those of a star import, and texts that only look like a tensor."""
    path = project(
        '[tool.kernel-lsp.inputs."model/norm/rms.py::Imported"]\nargs = ["name[0]", "text", "bfloat16[2, 4]"]\n'
        '[tool.kernel-lsp.inputs."model/norm/star.py::Any"]\nargs = []\n'
    )
    path.write_text("from elsewhere import Imported\n")
    (path.parent / "star.py").write_text("from elsewhere import *\n")
    settings, problems = load(path)
    assert problems == [] and len(settings.inputs) == 2

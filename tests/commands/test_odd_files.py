"""A folder of files that are named in every way, on the command line: generate, then check."""

import json
import subprocess
from pathlib import Path

import pytest

from kernel_lsp import kernel_file
from tests import nursery

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * {}

def get_inputs():
    return [torch.randn(8, 16)]
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*nursery.CLI, *map(str, arguments), "--json", "--device", "interpreter"]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_folder_is_generated_and_checked(tmp_path):
    names = ["19_ReLU.py", "my-model.py", "my_model.py", "with space.py"]
    for factor, name in enumerate(names, start=2):
        (tmp_path / name).write_text(MODEL.format(factor))
    done = run("generate", tmp_path)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)["reports"]
    assert len({report["file"] for report in reports}) == len(names)
    for report in reports:
        parsed = kernel_file.read(Path(report["file"]))
        assert kernel_file.is_of(Path(report["file"]), parsed, tmp_path / parsed.source.partition("::")[0], "Model")

    (tmp_path / "my-model.py").write_text(MODEL.format(7))  # its kernel is wrong now, and no other
    done = run("check", tmp_path)
    assert done.returncode == 1, done.stderr
    wrong = [r["target"]["uri"] for r in json.loads(done.stdout)["reports"] if r["chosen"] is None]
    assert wrong == [(tmp_path / "my-model.py").as_uri()]


def test_what_is_wrong_with_a_file_is_said_once(tmp_path):
    (tmp_path / "broken.py").write_text(
        MODEL.format(2) + MODEL.format(3).replace("Model", "Other") + "\nclass Last(:\n"
    )
    command = [*nursery.CLI, "generate", "broken.py", "--device", "interpreter"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    said = " ".join(done.stdout.split())
    assert said.count("does not parse") == 1 and "✗ Other: as Model." in said, done.stdout

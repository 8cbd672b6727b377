"""From a file of any name and place to a kernel file that works there, and where the whole folder is moved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp import kernel_file, schema
from tests.jobs.conftest import over, target

MODEL = """
import torch
{}

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * SCALE

def get_inputs():
    return [torch.randn(8, 64)]
"""
ALONE = MODEL.format("SCALE = 2.0")
FILES = {
    "19_ReLU.py": ALONE,
    "модель.py": ALONE,
    "types.py": ALONE,
    "my-model.py": MODEL.format("from pkg.scale import SCALE"),
    "pkg/inner/7_x.py": MODEL.format("from ..scale import SCALE"),
    "src/lib/model.py": MODEL.format("from .scale import SCALE"),
    "net/deep/model.py": MODEL.format("from ..scale import SCALE"),
}
BESIDE = {
    "pyproject.toml": "",
    "pkg/__init__.py": "",
    "pkg/scale.py": "SCALE = 2.0\n",
    "pkg/inner/__init__.py": "",
    "src/lib/__init__.py": "",
    "src/lib/scale.py": "SCALE = 2.0\n",
    "net/scale.py": "SCALE = 2.0\n",
}
#: As a user's program does that knows nothing of kernel-lsp: two classes of a file are one, and what they compute is right.
PROGRAM = """
import importlib.util, pickle, sys
import torch

sys.path += sys.argv[1:3]  # behind the standard library, which types.py would hide
for number, path in enumerate(sys.argv[3:]):
    spec = importlib.util.spec_from_file_location(f"kernel_{number}", path)
    kernel = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = kernel
    spec.loader.exec_module(kernel)
    x = torch.randn(5, 33)
    module = kernel.ModelTriton()
    assert isinstance(module, kernel.Model) and type(pickle.loads(pickle.dumps(module))) is kernel.ModelTriton
    assert module._in_envelope(x)
    assert torch.equal(module(x), kernel.Model().forward(x))
    print("right", kernel.Model.__module__)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_generate_use_and_move(make_jobs, tmp_path):
    project = tmp_path / "project"
    for name, text in (FILES | BESIDE).items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    jobs = make_jobs(device="interpreter")
    made = []
    for name in FILES:
        job = await over(jobs.submit("generate", target(project / name, "Model"), project / name), 400)
        assert job.error is None, f"{name}: {job.error}"
        assert job.report is not None and job.report.chosen is not None, f"{name}: {job.report.why}"
        made.append(Path(job.report.file))
    assert len(set(made)) == len(FILES)
    kernel = made[0]
    assert kernel.name == "model_triton.py"
    assert "_load_module" not in made[list(FILES).index("модель.py")].read_text("utf-8")

    # Validated as it was written, and still found where an older version put it.
    earlier = kernel.rename(kernel.parent / "model__19_relu__dc1de1_triton.py")
    path = project / "19_ReLU.py"
    job = await over(jobs.submit("validate", target(path, "Model"), path), 200)
    assert job.error is None and job.report.file == str(earlier)
    assert job.report.candidates[0].verdict.status in schema.CORRECT
    assert kernel_file.find_source(Path(job.report.file), kernel_file.read(Path(job.report.file))) == path
    earlier.rename(kernel)

    moved = tmp_path / "another place" / "moved"
    shutil.move(project, moved)
    arguments = [str(moved), str(moved / "src")]
    arguments += [str(moved / kernel.relative_to(project)) for kernel in made]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = [line.removeprefix("right ") for line in done.stdout.splitlines()]
    assert names[:2] == ["19_ReLU", "модель"] and names[2].startswith("types_")
    assert names[3:] == ["my-model", "pkg.inner.7_x", "lib.model", "net.deep.model"]


async def test_the_kernel_of_a_class_with_a_name_beyond_ascii_is_compiled(make_jobs, tmp_path):
    """ptxas reads ASCII alone: the names of a kernel and of its file are in what Triton gives it."""
    path = tmp_path / "größe test.py"
    path.write_text(ALONE.replace("class Model", "class Größe"))
    job = await over(make_jobs(device="interpreter").submit("generate", target(path, "Größe"), path), 200)
    assert job.error is None and job.report is not None and job.report.chosen is not None, job.report
    assert Path(job.report.file).name == "grosse_triton.py"
    (one,) = job.report.candidates
    assert [kernel.name for kernel in one.verdict.kernels] == ["grosse_kernel"]


SECOND = MODEL.format("SCALE = 3.0")


@pytest.mark.timeout(400)
async def test_another_class_takes_the_name_while_the_kernel_is_made(make_jobs, memory, tmp_path, monkeypatch):
    """As where two commands generate in one folder at the same time."""
    (tmp_path / "pyproject.toml").write_text("")
    folder = tmp_path / "models"
    folder.mkdir()
    path, other, kernels = folder / "blocks.py", folder / "other.py", folder / "kernels"
    path.write_text(ALONE)
    other.write_text(SECOND)
    heard = memory.verdict

    def verdict(job):
        if not kernels.exists():
            source = "models/other.py::Model"
            text = kernel_file.assemble({"source": source, "class": "Model"}, "X = 1\n")
            kernel_file.write(kernels / "model_triton.py", text, source)
        heard(job)

    monkeypatch.setattr(memory, "verdict", verdict)
    jobs = make_jobs(device="interpreter", overwrite=True)
    job = await over(jobs.submit("generate", target(path, "Model"), path), 200)
    assert job.error is None and job.report.file == str(kernels / "blocks_model_triton.py")
    assert kernel_file.read(kernels / "model_triton.py").body == "X = 1\n"
    assert kernel_file.read(kernels / "blocks_model_triton.py").source == "models/blocks.py::Model"
    found = [kernel_file.find_kernel(source, "Model").name for source in (path, other)]
    assert found == ["blocks_model_triton.py", "model_triton.py"]

    # A kernel from before that was moved with its folder is replaced where it is.
    moved = folder.rename(tmp_path / "moved")
    job = await over(jobs.submit("generate", target(moved / "blocks.py", "Model"), moved / "blocks.py"), 200)
    kernel = moved / "kernels" / "blocks_model_triton.py"
    assert job.error is None and job.report.file == str(kernel)
    assert sorted(file.name for file in kernel.parent.glob("*.py")) == sorted(found)
    assert kernel_file.read(kernel).source == "moved/blocks.py::Model"

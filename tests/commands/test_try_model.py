"""``kernel-lsp models try``, as it is typed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.commands.try_model import settings_of
from tests import nursery
from tests.tiny_model.cases import CASES


def try_it(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*nursery.CLI, "models", "try", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_name_means_a_folder_a_file_an_address_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert settings_of(str(tmp_path / "model"))["generators"] == ["kernelllm"]
    assert settings_of(str(tmp_path / "model.gguf"))["generators"] == ["llama-cpp"]
    served = settings_of("http://box:8000/v1#my/model")
    assert served == {"generators": ["openai"], "openai": {"base_url": "http://box:8000/v1", "model": "my/model"}}
    with pytest.raises(errors.ModelNotHere, match="models list"):
        settings_of("kernelllm")


def test_what_cannot_be_tried_says_why(tmp_path: Path) -> None:
    shutil.copy(CASES["RMSNorm"].path, tmp_path)
    done = try_it(tmp_path, "kernelllm", "rms_norm.py::RMSNorm")
    assert done.returncode == 2 and "kernelllm is not in" in done.stderr
    done = try_it(tmp_path, "kernelllm", ".")
    assert done.returncode == 2 and "FILE::CLASS" in done.stderr


@pytest.mark.models
@pytest.mark.timeout(600)
def test_answers_are_shown_and_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    from tests.tiny_model.cache import trained

    for case in (CASES["RMSNorm"], CASES["Leaky"]):
        shutil.copy(case.path, tmp_path)
    tiny = trained()
    done = try_it(tmp_path, str(tiny), "rms_norm.py::RMSNorm", "--samples", "2")
    assert done.returncode == 0, done.stderr
    assert "class ModelNew" in done.stdout and "→ ok" in done.stdout and "kernelllm: 2 samples" in done.stdout
    assert not (tmp_path / "kernels").exists()
    done = try_it(tmp_path, str(tiny / "tiny.gguf"), "modules.py::Leaky", "--json", "--write")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (
        document["candidates"][0]["verdict"]["status"] == "wrong" and document["candidates"][0]["candidate"]["answer"]
    )
    assert document["sources"][0]["generator"] == "llama-cpp" and document["error"] is None
    assert not (tmp_path / "kernels").exists()
    done = try_it(tmp_path, str(tiny), "rms_norm.py::RMSNorm", "--write")
    assert done.returncode == 0 and (tmp_path / "kernels" / "rms_norm_triton.py").exists()

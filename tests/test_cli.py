"""The command line as a user runs it: exit status, one JSON document, tables, Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import psutil
import pytest

from kernel_lsp import cli, errors, kernel_file, schema
from kernel_lsp.commands.run_jobs import Task, exit_status
from tests import nursery
from tests.checking.scratch import write_kernel, write_module
from tests.store.made import found, keep

ROOT = Path(__file__).resolve().parent.parent
SLEEPER = """
import time
import torch

class Sleeper(torch.nn.Module):
    def forward(self, x):
        open(__file__ + ".here", "w").close()
        time.sleep(600)

def get_inputs():
    return [torch.randn(4)]
"""


def command(*arguments: str | Path) -> list[str]:
    return [*nursery.CLI, *map(str, arguments)]


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=110, cwd=cwd, check=False)


@pytest.fixture
def samples(tmp_path):
    """A copy of two samples: one that works, one that does not."""
    for name in ("softmax.py", "sorted_unique.py"):
        shutil.copy(ROOT / "samples" / name, tmp_path)
    return tmp_path


def without_reader(*arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """Exit status and standard error of a command whose output has no reader any more, as after ``| head -0``."""
    environment = os.environ | {"KERNEL_LSP_STORE": str(cwd / "store.sqlite")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(*arguments), cwd=cwd, env=environment, text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        return process.wait(100), said


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "softmax.py::TemperatureSoftmax", "--json", "--device", "interpreter", "--no-write"],
        pytest.param(["generate", "softmax.py", "--device", "interpreter", "--no-write"], marks=pytest.mark.slow),
        pytest.param(["explain", "softmax.py::TemperatureSoftmax"], marks=pytest.mark.slow),
        ["check"],
        pytest.param(["history"], marks=pytest.mark.slow),
        ["completion", "bash"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[2:3]),
)
def test_without_a_reader_a_command_ends_as_if_by_sigpipe(samples, arguments):
    write_module(samples / "half.py", "Half", "x * 0.5")
    write_kernel(samples / "half.py", "Half")
    keep(samples / "store.sqlite", found(), samples / "half.py", samples, class_name="Half")
    status, said = without_reader(*arguments, cwd=samples)
    assert status == 141, said
    assert "Traceback" not in said and "BrokenPipe" not in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_have_the_commands(shell):
    done = run("completion", shell)
    assert done.returncode == 0 and "generate" in done.stdout and "no-write" in done.stdout


def test_generate_and_check_on_a_real_sample(samples):
    target = f"{samples / 'softmax.py'}::TemperatureSoftmax"
    done = run("generate", target, "--json", "--device", "interpreter")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document) == {field for field in schema.Report.__dataclass_fields__} | {"error"}
    assert document["error"] is None
    assert document["chosen"] is not None
    chosen = document["candidates"][document["chosen"]]
    assert {"candidate", "verdict", "measurement"} == set(chosen)
    assert chosen["verdict"]["status"] == "ok"
    report = schema.from_json(schema.Report, document)
    kernel = Path(report.file)
    assert kernel == samples / "kernels" / "temperature_softmax_triton.py"
    assert kernel_file.read(kernel).body == report.candidates[report.chosen].candidate.source

    # The class changes, and the kernel no longer fits.
    source = samples / "softmax.py"
    source.write_text(source.read_text().replace("logits / self.temperature", "logits * self.temperature"))
    done = run("check", samples, "--device", "interpreter")
    assert done.returncode == 1, done.stderr
    assert "1 kernel-outdated" in done.stdout
    assert kernel_file.read(kernel).claim.verdict.status == "ok"  # check writes nothing


def test_a_folder_is_taken_whole_and_known_failures_do_not_count(samples):
    (samples / "softmax.py").unlink()
    failing = f"{samples}/./sorted_unique.py::SortedUnique"
    done = run("generate", samples, "--no-write", "--json", "--may-fail", failing)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    assert report["target"]["class_name"] == "SortedUnique"
    assert report["error"]["code"] == "NothingToLower"


def test_exit_status_of_what_became_of_a_class():
    def task(error=None, chosen=None, regression=""):
        job = types.SimpleNamespace(report=schema.Report(schema.Target("", "A"), chosen=chosen, regression=regression))
        return Task("a.py::A", None, job, error)

    good, wrong, regressed = task(chosen=0), task(), task(chosen=0, regression="slower")
    none_found = task(errors.NothingToLower(class_name="A", op="sort", detail=""))
    no_inputs = task(errors.NoExampleInputs(class_name="A"))
    assert [exit_status([one]) for one in (good, wrong, regressed, none_found, no_inputs)] == [0, 1, 1, 1, 2]
    assert exit_status([good, no_inputs, wrong]) == 1
    assert exit_status([good, no_inputs]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["generate", "nowhere.py::A", "--json"], "PathMissing"),
        (["generate", "softmax.py::Missing", "--json"], "ClassNotFound"),
        (["generate", "nowhere.py", "--json"], "PathMissing"),
        (["generate", "softmax.py::TemperatureSoftmax", "--generator", "oracle", "--json"], "synthesizer"),
        (["generate", "softmax.py::TemperatureSoftmax", "--seconds", "-1", "--json"], "more than zero"),
        (["generate", "softmax.py::TemperatureSoftmax", "--interpreter", "/no/python", "--json"], "InterpreterMissing"),
        (["validate", "softmax.py", "--json"], "SourceGiven"),
        (["validate", "nowhere.py", "--json"], "PathMissing"),
    ],
)
def test_what_cannot_be_validated_exits_with_2_and_one_document(samples, arguments, says):
    done = run(*arguments, cwd=samples)
    assert done.returncode == 2, done.stderr
    assert says in json.dumps(json.loads(done.stdout), ensure_ascii=False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["genrate", "a.py"], "did you mean generate?"),
        (["generate", "a.py", "--devise", "cuda"], "generate: error: unrecognized arguments: --devise cuda; did you mean --device?"),
        (["generate", "--devise=cuda", "a.py"], "unrecognized arguments: --devise=cuda; did you mean --device?"),
        (["models", "list", "--ofline"], "models list: error: unrecognized arguments: --ofline; did you mean --offline?"),
        (["models", "lsit"], "did you mean list?"),
        (["generate", "a.py", "--bounds", "chek"], "did you mean check?"),
        (["--vresion"], "error: unrecognized arguments: --vresion; did you mean --version?"),
        (["generate", "--devise=cuda"], "generate: error: unrecognized arguments: --devise=cuda; did you mean --device?"),
        (["generate", "--thorough"], "the following arguments are required: FILE::CLASS"),
        (["store", "inof"], "did you mean info?"),
        (["generate", "a.py", "--xyzzy"], "unrecognized arguments: --xyzzy\n"),
    ],
)  # fmt: skip
def test_of_a_misspelt_word_the_nearest_is_named(capsys, arguments, says):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_without_a_command_all_of_them_are_listed(capsys):
    assert cli.main([]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "generate a validated kernel for each class" in said.err


def test_usage_errors_exit_with_2():
    assert run("generate").returncode == 2
    assert run("conjure").returncode == 2


@pytest.mark.parametrize("name", ["check", "validate"])
def test_a_folder_without_kernel_files(tmp_path, name):
    done = run(name, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no kernel files" in done.stderr
    assert json.loads(run(name, tmp_path, "--json").stdout)["reports"] == []


def test_validate_takes_a_folder_and_a_file_in_it_once(tmp_path):
    write_module(tmp_path / "half.py", "Half", "x * 0.5")
    kernel = write_kernel(tmp_path / "half.py", "Half")
    before = kernel.read_bytes()
    done = run("validate", tmp_path, kernel, "--device", "interpreter", "--json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    assert (report["target"]["class_name"], report["error"], report["chosen"]) == ("Half", None, 0)
    assert kernel.read_bytes() == before

    (tmp_path / "without.py").write_text("x = 1\n")
    done = run("validate", tmp_path / "without.py")
    assert done.returncode == 2 and "isasourcefile" in "".join(done.stdout.split())


def test_doctor_says_what_is_there_and_how_to_fix_the_rest(tmp_path):
    done = run("doctor", "--json")
    document = json.loads(done.stdout)
    checks = {check["name"]: check for check in document["checks"]}
    tools = {"ruff", "interpreter", "torch", "triton", "numpy", "GPU", "C compiler", "Python.h", "ptxas", "disk"}
    layers = {"Landlock (files)", "seccomp (sockets, processes)", "cgroup (number of processes)"}
    assert set(checks) == tools | layers
    assert done.returncode == 0 and document["ok"]
    assert all(check["fix"] for check in document["checks"] if check["state"] != "ok")

    environment = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80"}
    done = subprocess.run(command("doctor"), env=environment, capture_output=True, text=True, check=False)
    advice = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    # a path is never broken: such a line is one word
    assert not [line for line in advice if len(line) > 80 and len(line.split()) > 1]

    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # no site-packages: no torch
    bare.chmod(0o755)
    done = run("doctor", "--interpreter", bare)
    assert done.returncode == 2
    assert "pip install" in done.stdout


def test_an_interrupt_ends_everything_and_still_prints_one_document(tmp_path):
    path = tmp_path / "sleeper.py"
    path.write_text(SLEEPER)
    with subprocess.Popen(
        command("generate", f"{path}::Sleeper", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "sleeper.py.here").exists():
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        left = psutil.Process(running.pid).children(recursive=True)
        assert left
        began = time.monotonic()
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=10)
        assert time.monotonic() - began < 3
    assert running.returncode == 130
    assert "cancelled" in err and "Traceback" not in err
    assert json.loads(out)["error"]["code"] == "Cancelled"
    _, alive = psutil.wait_procs(left, timeout=1)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_the_commands_import_no_torch():
    program = (
        "import sys; from kernel_lsp import cli; import kernel_lsp.commands.generate, kernel_lsp.commands.check, "
        "kernel_lsp.commands.doctor; print([m for m in ('torch', 'triton', 'numpy', 'pygls') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_serve_is_reached_without_the_rest_of_the_command_line():
    program = "import sys; from kernel_lsp import cli; print([m for m in sys.modules if m.startswith('kernel_lsp.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kernel_lsp.cli']"
    assert "--tcp" in run("serve", "--help").stdout


@pytest.mark.slow
def test_a_claim_is_said_to_be_one_and_a_validation_is_kept(samples, monkeypatch):
    """A file from elsewhere: ``check`` says what it claims and what this machine finds; the next time it knows."""
    (samples / "sorted_unique.py").unlink()
    monkeypatch.setenv("KERNEL_LSP_STORE", str(samples / "elsewhere.sqlite"))
    target = f"{samples / 'softmax.py'}::TemperatureSoftmax"
    done = run("generate", target, "--device", "interpreter")
    assert done.returncode == 0 and "Validated on Triton interpreter (CPU), torch" in done.stdout, done.stderr
    (kernel,) = (samples / "kernels").glob("*_triton.py")
    header = kernel.read_text().partition("# ///\n")[0]
    assert len(header.splitlines()) + 1 <= 25

    monkeypatch.setenv("KERNEL_LSP_STORE", str(samples / "here.sqlite"))
    kernel.write_text(kernel.read_text().replace('on = "Triton interpreter (CPU)"', 'on = "NVIDIA H100"'))
    said = " ".join(run("check", samples, "--device", "interpreter").stdout.split())
    claim = "says it was validated on NVIDIA H100 by kernel-lsp 0.1.0 (correct, not timed)"
    assert f"The kernel file {claim}; not validated on this machine before." in said
    assert 'on = "NVIDIA H100"' in kernel.read_text()  # check writes nothing
    document = json.loads(run("validate", kernel, "--device", "interpreter", "--write", "--json").stdout)
    assert document["before"].startswith("was validated on this machine on 20")
    assert document["warnings"] == []
    assert 'on = "Triton interpreter (CPU)"' in kernel.read_text()

    # Each validation is history: by which command, of which kernel, and nothing that changed in between.
    (seen,) = json.loads(run("history", target, "--json").stdout)["classes"]
    entries = seen["entries"]
    assert [entry["command"] for entry in entries] == ["check", "validate"]
    assert {(e["status"], e["here"], e["generator"], e["mode"]) for e in entries} == {
        ("ok", True, "synthesizer", "interpreter")
    }
    assert entries[1]["changed"] == [] and entries[1]["passed"] > 3 and entries[1]["error"] is not None


@pytest.mark.slow
def test_a_store_that_is_damaged_is_a_warning(samples, monkeypatch):
    store = samples / "store.sqlite"
    store.write_bytes(b"somebody's file" * 1000)
    monkeypatch.setenv("KERNEL_LSP_STORE", str(store))
    target = f"{samples / 'softmax.py'}::TemperatureSoftmax"
    done = run("generate", target, "--device", "interpreter")
    assert done.returncode == 0, done.stderr
    assert "kernel-lsp: warning: The store of what was validated on this machine could not be written" in done.stderr
    (kernel,) = (samples / "kernels").glob("*_triton.py")
    claimed = kernel.read_text().replace('on = "Triton interpreter (CPU)"', 'on = "NVIDIA H100"')
    kernel.write_text(claimed)
    document = json.loads(run("validate", kernel, "--device", "interpreter", "--json").stdout)
    assert document["chosen"] == 0 and len(document["warnings"]) == 1  # neither read nor written, said once
    assert kernel.read_text() == claimed  # without --write a header stays as it is
    assert store.read_bytes().startswith(b"somebody's file")


def test_a_progress_line_has_the_status(samples):
    write_module(samples / "half.py", "Half", "x * 0.5")
    kernel = write_kernel(samples / "half.py", "Half")
    assert "[1/1] Half: ok (" in run("validate", kernel, "--device", "interpreter").stderr
    write_module(samples / "half.py", "Half", "x * 0.25")
    assert "[1/1] Half: outdated (" in run("validate", kernel, "--device", "interpreter").stderr

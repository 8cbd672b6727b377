"""The step in an unmarked process: it finds candidates that are right under validation alone, accuses no others, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
import pytest

from tests.confinement.waiting import wait_until
from tests.validation.adversarial import corpus
from tests.validation.adversarial.material import affine, softmax
from tests.validation.modules import AFFINE, SOFTMAX
from tests.worker.worker_client import Client

NAME = "in an unmarked process"
TELLS = ["environment", "file_name", "loaded_modules", "stack", "dispatch_mode", "guarded_memory", "poisoned_memory"]
#: an end of forward that does something where no module of ours is loaded
ELSEWHERE = "import sys\nif not any(name.startswith('kernel_lsp.') for name in sys.modules):\n    "
#: the module is there already, though no kernel file may import it
HANG_UP = """import os
    for name in os.listdir("/proc/self/fd"):
        try:
            sys.modules["socket"].socket(fileno=int(name)).shutdown(2)
        except OSError:
            pass
"""

Validate = Callable[..., dict[str, Any]]


def slow(*values: str) -> Any:
    """Parameters that make test-slow or make test-cases has: make test has one of each kind."""
    return pytest.param(*values, marks=pytest.mark.slow)


def step_of(verdict: dict[str, Any]) -> dict[str, Any]:
    (found,) = [check for check in verdict["checks"] if check["name"] == NAME]
    return found


# Of those that are corpus files, which are validated there, too, make test has one or two, make test-slow more, make test-cases the rest.
@pytest.mark.parametrize("tell", [*TELLS[:2], *(pytest.param(tell, marks=pytest.mark.slow) for tell in TELLS[2:])])
def test_who_is_right_only_where_it_sees_a_validation_is_cheating(validate: Validate, tell: str) -> None:
    entry = corpus.read(f"tampering/{tell}")
    verdict = validate(entry.module, entry.class_name, entry.kernel)["verdict"]
    assert verdict["status"] == "cheating"
    assert verdict["reason"].startswith(
        "in an unmarked process it computes something else than where it is validated: "
    )
    assert not step_of(verdict)["passed"]


HONEST = [
    *("honest/counts_calls", "honest/in_place_returned", "honest/dict_with_none", "honest/draws_from_python"),
    *("honest/running_average", "honest/lazily_made_table", "honest/named_tuple", "honest/expanded_input"),
    *("honest/optional_argument", "honest/autotuned", "honest/batch_norm_in_training", "honest/half_module"),
]


@pytest.mark.parametrize("name", [*HONEST[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in HONEST[2:])])
def test_an_honest_kernel_passes_and_the_step_is_among_its_checks(validate: Validate, name: str) -> None:
    entry = corpus.read(name)
    result = validate(entry.module, entry.class_name, entry.kernel, **entry.how)
    assert result["verdict"]["status"] == "ok", result["verdict"]["reason"]
    assert step_of(result["verdict"])["passed"]
    # On a busy machine instances may be left out; then it is called at sizes of one, and that is said.
    limits = [limit for limit in result["verdict"]["limits"] if NAME in limit]
    assert all(limit.endswith("for which the interpreter is too slow") for limit in limits), limits


@pytest.mark.slow
def test_a_launcher_that_asks_for_memory_of_a_gpu_by_name_is_not_accused(validate: Validate) -> None:
    kernel = softmax().replace("device=x.device", 'device="cuda"')
    verdict = validate(SOFTMAX, "Softmax", kernel)["verdict"]
    assert verdict["status"] == "ok", verdict["reason"]
    assert step_of(verdict)["passed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "does, status, reason",
    [
        ("raise ValueError('not here')", "crashed", "in an unmarked process: ValueError: not here"),
        ("return 'softmax'", "cheating", "in an unmarked process it computes something else"),
        (
            "sys.modules['__main__'].results += [[1, 2, 3]]",
            "cheating",
            "in an unmarked process it gives another answer",
        ),
        (HANG_UP, "cheating", "in an unmarked process it hung up on the referee"),
        slow("import os; os._exit(3)", "crashed", "in an unmarked process it ended: exit status 3"),
        slow("sys.exit()", "crashed", "in an unmarked process: SystemExit"),
        slow("import os; os.kill(os.getpid(), 11)", "crashed", "in an unmarked process it ended: killed by SIGSEGV"),
        slow("return y.to_sparse()", "crashed", "in an unmarked process: "),
        slow("sys.modules['__main__'].results[:] = [1]", "crashed", "in an unmarked process: "),
        slow(
            "sys.modules['__main__'].results.append([y.expand(9999, *y.shape)] * 3)",
            "cheating",
            "in an unmarked process it ",
        ),
        slow("x.mul_(2)", "cheating", "in an unmarked process it computes something else"),
    ],
)
def test_what_it_does_only_there_is_reported(validate: Validate, does: str, status: str, reason: str) -> None:
    verdict = validate(SOFTMAX, "Softmax", softmax(last=ELSEWHERE + does))["verdict"]
    assert (verdict["status"], step_of(verdict)["passed"]) == (status, False)
    assert reason in verdict["reason"]


@pytest.mark.slow
def test_a_class_that_cannot_be_constructed_only_there_is_reported(validate: Validate) -> None:
    top = "import sys\nassert any(name.startswith('kernel_lsp.') for name in sys.modules), 'not here'\n"
    verdict = validate(AFFINE, "Affine", affine(top=top))["verdict"]
    assert verdict["status"] == "crashed"
    assert "in an unmarked process: AssertionError: not here" in verdict["reason"]


@pytest.mark.slow
def test_one_that_hangs_only_there_is_stopped_and_nothing_of_it_is_left(worker: Client, validate: Validate) -> None:
    family = psutil.Process(worker.process.pid)
    validate(SOFTMAX, "Softmax", softmax())
    before = {(p.pid, p.num_fds()) for p in family.children(recursive=True)}
    verdict = validate(SOFTMAX, "Softmax", softmax(last=ELSEWHERE + "import time; time.sleep(1000)"))["verdict"]
    assert (verdict["status"], verdict["reason"]) == (
        "timeout",
        "in an unmarked process it gave no answer, and was stopped",
    )
    assert wait_until(lambda: {(p.pid, p.num_fds()) for p in family.children(recursive=True)} == before, 5)
    assert validate(SOFTMAX, "Softmax", softmax())["verdict"]["status"] == "ok"


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_there_is_a_limit(validate: Validate) -> None:
    module = "import sys\nif 'kernel_lsp.worker.unmarked_process' in sys.modules: raise OSError('busy')\n" + SOFTMAX
    verdict = validate(module, "Softmax", softmax())["verdict"]
    assert verdict["status"] == "ok"
    (limit,) = [limit for limit in verdict["limits"] if limit.startswith(NAME)]
    assert limit.startswith("in an unmarked process (it could not be started: ImportFailed: ") and "busy" in limit

"""``--executor ray``: without ray, and on a cluster of this machine's own."""

from __future__ import annotations

import importlib.util
import os
import sys
import textwrap
from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.evaluation import ray_executor
from kernel_lsp.evaluation.lane import Plan
from kernel_lsp.evaluation.records import Record
from kernel_lsp.suites import folder

MODULE = """
    import os, signal, time
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            {body}

    def get_inputs():
        return [torch.randn(4, 8)]
"""


def test_without_ray_the_command_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(errors.RayMissing, match=r"-m pip install 'kernel-lsp\[ray\]'"):
        ray_executor.run([], Plan(), None, print, print)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_problems_are_spread_over_several_workers_and_a_lost_one_costs_its_problem_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The parent of the worker's process is the Ray actor: this takes it away, as a lost machine would.
    lost = "[os.kill(int(open(f'/proc/{p}/stat').read().split()[3]), signal.SIGKILL) for p in [os.getsid(0)]]; time.sleep(60)"
    bodies = {
        "a_scale": "return x * 2.0",
        "b_crash": "os.kill(os.getpid(), signal.SIGSEGV)",
        "c_relu": "return torch.relu(x)",
        "d_lost": lost,
        "e_add": "return x + 1.0",
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE).format(body=body))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    records: list[Record] = []
    plan = Plan(settings={"device": "interpreter", "seconds": 300.0})
    assert ray_executor.run(folder.read([tmp_path]), plan, 2, records.append, lambda *_: None)
    statuses = {record.problem.name + record.problem.path: record.status for record in records}
    assert statuses == {
        "Modela_scale.py": "ok",
        "Modelb_crash.py": "crashed",
        "Modelc_relu.py": "ok",
        "Modeld_lost.py": "crashed",
        "Modele_add.py": "ok",
    }
    lost_record = next(record for record in records if record.problem.path == "d_lost.py")
    assert "lost twice" in lost_record.reason

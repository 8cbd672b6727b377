"""What is timed of torch.compile where others take the GPU before or afterwards. The lock is real, the GPU and its clock are not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_lsp import schema
from kernel_lsp.worker import baseline, gpu_lock

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``measured(path)``: what came of two modes, and what was told, where another one takes the lock of ``path`` while the first is timed."""
    monkeypatch.setattr(gpu_lock, "MOST_SECONDS", 0.3)
    monkeypatch.setattr(baseline.preparing, "on_device", _on_device)
    monkeypatch.setattr(baseline.timing, "rotated", lambda args, kwargs, count: [(args, kwargs)])
    monkeypatch.setattr(baseline, "_compiled", lambda module, inputs, mode: {"eager": module, "compiled": module})

    def measure(name: str, while_compiling: bool = False) -> tuple[dict[str, Any], list[str]]:
        told: list[str] = []
        with (tmp_path / name).open("w") as other:

            def timed(calls: Any, *_: Any, **__: Any) -> dict[str, schema.Timing]:
                fcntl.flock(other, fcntl.LOCK_EX)
                return {name: schema.Timing(1.0, 1.0, 1.0, 1) for name in calls}

            monkeypatch.setattr(baseline.timing, "interleaved", timed)
            if while_compiling:
                fcntl.flock(other, fcntl.LOCK_SH)
            given = {"device": "cpu", "modes": ["default", "max-autotune"], "rates": {"beyond": 1.0}}
            found = baseline.measure(
                given | {"locks": str(tmp_path)},
                lambda event, data: told.append(data["mode"]) if event == "baseline" else None,
            )
        return found, told

    return measure


def _on_device(
    given: dict[str, Any], before_gpu: Callable[[], None]
) -> tuple[torch.nn.Module, tuple[Any], dict[str, Any]]:
    """As on a GPU: the lock is taken before the module is made."""
    before_gpu()
    return torch.nn.ReLU(), (torch.ones(4),), {}


def test_a_time_is_kept_where_checking_has_to_wait_too_long_afterwards(measured) -> None:
    found, told = measured("cpu.gate")
    assert list(found["modes"]) == told == ["default"] and found["modes"]["default"]["compiled"]["median"] == 1.0
    assert list(found["missing"]) == ["max-autotune"]
    assert found["missing"]["max-autotune"].startswith("torch.compile: other kernel-lsp processes checked or timed")


def test_where_the_gpu_is_not_to_be_had_no_further_mode_is_compiled_and_the_reason_is_said(measured) -> None:
    found, told = measured("cpu.lock", while_compiling=True)
    assert not found["modes"] and not told
    assert list(found["missing"]) == ["default", "max-autotune"]
    assert all("Failure" not in why and "minutes" in why for why in found["missing"].values())


def test_a_mode_that_cannot_be_compiled_does_not_keep_others_from_being_timed(measured, monkeypatch) -> None:
    def compiled(module: torch.nn.Module, inputs: Any, mode: str) -> Any:
        if mode == "default":
            raise RuntimeError("no compiler")
        return {"eager": module, "compiled": module}

    monkeypatch.setattr(baseline, "_compiled", compiled)
    found, told = measured("nobody's")
    assert list(found["modes"]) == told == ["max-autotune"]
    assert found["missing"] == {"default": "torch.compile: RuntimeError: no compiler"}

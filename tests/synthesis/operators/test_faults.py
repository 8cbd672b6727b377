"""An error in a lowering is a bug: torch runs the operator, the candidate tells of it, and a test fails."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_lsp import errors, schema
from kernel_lsp.server.control.listener import Listener
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.build import NotLowered
from kernel_lsp.synthesis.operators import registry


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(torch.sin(x) * 2)


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def written(kind: type[torch.nn.Module]) -> list[schema.Candidate]:
    module = kind()
    return synthesize(module, capture(module, (torch.randn(4, 8),)), class_name=kind.__name__, import_from="here")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lowering of sin raises an error."""

    def make(error: Exception) -> None:
        def lowering(x: Any) -> Any:
            raise error

        entry = dataclasses.replace(registry.OPERATORS["aten.sin"], lower=lowering)
        monkeypatch.setitem(registry.OPERATORS, "aten.sin", entry)

    return make


@pytest.mark.parametrize("kind", [AttributeError, TypeError, IndexError, AssertionError, ValueError])
def test_an_error_is_recorded_and_torch_runs_the_operator(broken: Any, kind: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("KERNEL_LSP_RAISE_FAULTS")
    broken(kind("no such thing"))
    candidate = written(Twice)[0]
    assert candidate.kept == {"aten.sin": 1}
    fault = schema.from_json(schema.Candidate, schema.to_json(candidate)).faults[0]
    error = errors.from_json(fault)
    assert isinstance(error, errors.LoweringFailed)
    assert error.values["op"] == "aten.sin" and error.values["at"] > 0
    assert f"{kind.__name__}: no such thing" in str(error) and "report it" in str(error)


def test_not_lowered_is_no_fault(broken: Any) -> None:
    broken(NotLowered("not in this form"))
    candidate = written(Twice)[0]
    assert candidate.kept == {"aten.sin": 1} and candidate.faults == []


def test_where_nothing_is_left_the_error_tells_of_it(broken: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("KERNEL_LSP_RAISE_FAULTS")
    broken(ValueError("no such thing"))
    with pytest.raises(errors.NothingToLower, match=r"failed to lower aten\.sin .*no such thing"):
        written(Sine)


def test_it_raises_in_tests(broken: Any) -> None:
    broken(ValueError("no such thing"))
    with pytest.raises(ValueError, match="no such thing"):
        written(Twice)


def test_an_operator_has_one_lowering() -> None:
    with pytest.raises(ValueError, match=r"aten\.exp is lowered twice"):
        registry.lowers("aten.exp")(lambda x: x)


@pytest.mark.parametrize("asked", [True, False])
def test_the_editor_shows_it_once(asked: bool) -> None:
    shown: list[tuple[str, str]] = []
    logged: list[str] = []
    server = SimpleNamespace(
        log_message=lambda text, level: logged.append(text),
        show_failure=lambda text, level, *, code: shown.append((code, text)),
    )
    listener = Listener(SimpleNamespace(connection=server, closing=False))  # type: ignore[arg-type]
    fault = errors.LoweringFailed(class_name="A", op="aten.x", file="a.py", at=1, detail="ValueError: b").to_json()
    entry = schema.Validated(schema.Candidate("", "synthesizer", faults=[fault]), schema.Verdict("ok"))
    job: Any = SimpleNamespace(report=SimpleNamespace(candidates=[entry, entry]))
    listener._tell_faults(job, asked=asked)
    said = (
        "kernel-lsp failed to lower aten.x in A (a.py, line 1); torch runs it. Please report it. Details: ValueError: b"
    )
    assert logged == [fault["message"]] and shown == ([("LoweringFailed", said)] if asked else [])

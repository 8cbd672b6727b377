"""A forward that depends on values: the message says which line and value, and what to do; the error carries the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.specimen.data_dependence import described
from tests.worker.worker_client import Client, WorkerError

MODULE = """\
import torch
from torch import nn
class M(nn.Module):
    def forward(self, x, lengths):
        {}
def get_inputs(): return [torch.randn(4, 8), torch.tensor([3, 5])]
"""

#: forward → class of the error, line, and what is said
CASES = {
    "if x.sum() > 0:\n            return x\n        return -x": (
        "NotExportable",
        5,
        ["(`if x.sum() > 0:`)", "torch.where"],
    ),
    "tok = x[x.sum(1) > 0]\n        if tok.numel() == 0:\n            return x\n        return tok * 2": (
        "NotExportable",
        6,
        ["a size depends on values", "(`if tok.numel() == 0:`; `tok = x[x.sum(1) > 0]`, line 5)", "(a mask)"],
    ),
    "n = int(lengths.max())\n        return torch.zeros(n) + x.sum()": (
        "NotExportable",
        5,
        ["(`int(lengths.max())`, a number out of a tensor)", "Take sizes from shapes"],
    ),
    "n = lengths.max().item()\n        return x[:, :n] * 2": (
        "NothingToLower",
        6,
        ["aten.slice", "`n = lengths.max().item()` (line 5) takes out of a tensor"],
    ),
    "scale = x.mean().item()\n        return x * scale": (
        "NothingToLower",
        6,
        ["aten.mul", "`scale = x.mean().item()` (line 5) takes out of a tensor"],
    ),
    "return torch.cat([p * 2 for p in x.split(lengths.tolist())])": (
        "NothingToLower",
        5,
        ["aten.split_with_sizes", "takes out of a tensor"],
    ),
    "return x[x > 0] * 2": (
        "NothingToLower",
        5,
        ["aten.index", "depends on the data", "`return x[x > 0] * 2`, line 5"],
    ),
}


@pytest.mark.parametrize("forward", CASES)
def test_the_message_says_where_and_what_to_do(worker: Client, write: Callable[..., str], forward: str) -> None:
    code, line, said = CASES[forward]
    inputs = "torch.tensor([3, 1])" if "split" in forward else "torch.tensor([3, 5])"
    path = write(MODULE.format(forward).replace("torch.tensor([3, 5])", inputs))
    with pytest.raises(WorkerError) as caught:
        worker.call("synthesize", path=path, class_name="M", device="interpreter")
    error = caught.value
    assert (error.code, error.where) == (code, {"path": path, "line": line})
    assert all(part in error.message for part in said), error.message
    assert "Eq(" not in error.message and "u0" not in error.message


@pytest.mark.parametrize(
    ("text", "line", "what", "advice"),
    [
        ("while x.norm() > 1:\n    x = x / 2\n", 1, "`while x.norm() > 1:`", "number of steps"),
        ("assert x.isfinite().all()\n", 1, "`assert x.isfinite().all()`", "before the module"),
        ("y = (x\n    * 2\n    if x.sum() > 0 else\n    x)\n", 3, "`x.sum() > 0`, which chooses", "torch.where"),
        (
            "def f(x):\n    k = x.sum().item()\n    if k > 0:\n        return x\n",
            3,
            "; `k = x.sum().item()`, line 2",
            "where",
        ),
        ("y = x * 2 if len(x) and self.on else x\n", 1, "`len(x) and self.on`, which chooses", "(a mask)"),
        ("if x.shape[0] > self.most:\n    x = x[: self.most]\n", 1, "`if x.shape[0] > self.most:`", "(a mask)"),
        ("if x.shape[0] > 0 and x.max() > 0:\n    x = x * 2\n", 1, "`if x.shape", "torch.where"),
        (
            "d = torch.distributions.Normal(m, s)\n",
            1,
            "`torch.distributions.Normal(m, s)`, which checks",
            "validate_args=False",
        ),
        ("y = Categorical(logits=x).entropy()\n", 1, "`Categorical(logits=x)`, which checks", "validate_args=False"),
        ("for _ in range(n.item()):\n    x = x * 2\n", 1, "`n.item()`, a number", "keep the value a tensor"),
    ],
)
def test_the_code_that_a_line_depends_on(tmp_path: Path, text: str, line: int, what: str, advice: str) -> None:
    path = tmp_path / "code.py"
    path.write_text(text)
    told = described(str(path), line)
    assert told is not None and what in told.what and advice in told.advice


def test_a_line_that_looks_at_no_value(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text("y = x * 2\nz = F.gaussian_nll_loss(x[:, 0], y.float(), x.bool().int())\n")
    assert described(str(path), 1) is None and described(str(tmp_path / "gone.py"), 1) is None
    assert described(str(path), 2) is None  # these convert a tensor; what looks at values is in torch's own code


@pytest.mark.parametrize(
    ("test", "of_size"),
    [
        ("tok.numel() == 0", True),
        ("len(tok) > self.most or not tok.shape[0]", True),
        ("n > tok.numel()", False),
        ("flag and tok.shape[0] > 1", False),
        ("tok.sum() > 0", False),
    ],
)
def test_a_name_in_a_condition_may_stand_for_a_value(tmp_path: Path, test: str, of_size: bool) -> None:
    path = tmp_path / "m.py"
    path.write_text(
        f"def forward(self, x, flag):\n    tok, n = x[x > 0], x.sum().item()\n    if {test}:\n        return x\n"
    )
    told = described(str(path), 3)
    assert told is not None and told.of_size == of_size
    assert ("a mask" in told.advice) == of_size

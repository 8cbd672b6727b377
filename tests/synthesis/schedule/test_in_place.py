"""Which buffers a kernel stores where they lie, and what a caller that keeps a result sees of that."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.synthesis import interpreted
from tests.synthesis.printing.replay_modules import REPLAYED, candidates


class Sums(nn.Module):
    """It adds up what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(6, 8))
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        self.sum.add_(x)
        return x * 2


class Gives(Sums):
    """The same, and a view of the sum as its result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        new = x + self.sum
        self.sum.copy_(new)
        return new.T


def test_a_buffer_that_a_result_is_a_view_of_is_copied() -> None:
    stored = candidates(Sums().eval(), [torch.randn(6, 8)])
    assert "sum.copy_(" not in stored[0].source
    assert REPLAYED in [one.variant for one in stored]
    given = candidates(Gives().eval(), [torch.randn(6, 8)])
    assert all("sum.copy_(" in one.source.replace("sum_contiguous", "sum") for one in given)


PROGRAM = """
import sys
from pathlib import Path
import torch
from kernel_lsp.validation.interpreter import repair
from tests.synthesis.printing.replay_modules import candidates, loaded
from tests.synthesis.schedule.test_in_place import Gives

repair()
source = candidates(Gives().eval(), [torch.randn(6, 8)])[0].source
file = loaded(source, Path(sys.argv[1]), "gives_triton")
module, kernel = Gives().eval(), file.GivesTriton().eval()
kernel.load_state_dict(module.state_dict())
with torch.no_grad():
    first, second = torch.randn(2, 6, 8)
    assert kernel._in_envelope(first)
    kept, expected = kernel(first), module(first)
    kernel(second), module(second)
    torch.testing.assert_close(kept, expected)
    torch.testing.assert_close(kernel.sum, module.sum)
print("done")
"""


def test_a_result_that_a_caller_keeps_stays_as_it_was(tmp_path: Path) -> None:
    assert interpreted.printed(PROGRAM, str(tmp_path)).endswith("done\n")

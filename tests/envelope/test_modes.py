"""Which modules ask for the mode that they are in."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.envelope.modes import mode_conditions
from kernel_lsp.envelope.tree import configuration


class ThroughAHelper(nn.Module):
    def _scale(self) -> float:
        return 2.0 if self.training else 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self._scale()


class Inherits(ThroughAHelper):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 1


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        (nn.Linear(2, 2), []),
        (nn.Sequential(nn.ReLU(), nn.Dropout(0.0)), []),
        (nn.Sequential(nn.ReLU(), nn.Dropout(0.5)), ["not self.training", "not self[1].training"]),
        (nn.RReLU(), ["not self.training"]),
        (ThroughAHelper(), ["not self.training"]),
        (Inherits(), ["not self.training"]),
        (
            nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)),
            ["not self.training", "not self.parametrizations.weight[0].training"],
        ),
    ],
)
def test_a_kernel_for_eval_mode_is_not_run_in_the_other(module: nn.Module, wanted: list[str]) -> None:
    assert mode_conditions(module.eval()) == wanted


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm", [nn.BatchNorm2d(4), nn.InstanceNorm2d(4, track_running_stats=True)])
def test_the_momentum_of_running_statistics_matters_in_training_alone(norm: nn.Module, training: bool) -> None:
    found = configuration(nn.Sequential(norm).train(training), exact=False)
    assert ("self[0].momentum == 0.1" in found) == training and "self[0].eps == 1e-05" in found


@pytest.mark.parametrize("training", [False, True])
def test_whether_a_batch_norm_keeps_statistics_matters_in_training_alone(training: bool) -> None:
    found = configuration(nn.Sequential(nn.BatchNorm2d(4), nn.Dropout(0.5, inplace=True)).train(training), exact=False)
    assert ("self[0].track_running_stats is True" in found) == training == ("self[1].inplace is True" in found)

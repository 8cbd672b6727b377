"""Which of several envelopes holds for a call of a candidate."""

import torch

from kernel_lsp.validation.matching_envelope import noted


class Several(torch.nn.Module):
    def forward(self, x):
        if self._in_envelope(x):
            return x + 1
        if self._in_envelope_2(x):
            return x + 2
        return x

    def _in_envelope(self, x):
        return x.shape[0] > 4

    def _in_envelope_2(self, x):
        return x.dtype == torch.float32


class One(torch.nn.Module):
    def forward(self, x):
        return x + 1 if self._in_envelope(x) else x

    def _in_envelope(self, x):
        return True


def held(module: torch.nn.Module, x: torch.Tensor) -> list[int]:
    with noted(module) as numbers:
        module(x)
    assert not any("envelope" in name for name in vars(module))
    return numbers


def test_the_envelope_that_holds_for_a_call() -> None:
    module = Several()
    assert held(module, torch.ones(5)) == [1]
    assert held(module, torch.ones(3)) == [2]
    assert held(module, torch.ones(3, dtype=torch.float64)) == []


def test_of_one_envelope_there_is_nothing_to_tell() -> None:
    assert held(One(), torch.ones(3)) == []

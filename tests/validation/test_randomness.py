"""Whether random numbers were drawn, from any generator."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from kernel_lsp.validation import randomness


@pytest.mark.parametrize("draw", [lambda: torch.rand(1), random.random, numpy.random.rand])
def test_random_states_differ_after_a_draw(draw):
    before = randomness.state()
    assert randomness.state() == before
    draw()
    assert randomness.state() != before

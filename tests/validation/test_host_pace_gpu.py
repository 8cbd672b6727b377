"""How long a launch takes, on a host with nothing else to do and on one whose processors are taken."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch

from kernel_lsp.validation import host_pace

pytestmark = [pytest.mark.gpu, pytest.mark.alone]


def test_launches_take_longer_where_other_programs_have_the_processors():
    device = torch.device("cuda")
    at_rest = min(host_pace.launch_microseconds(device) for _ in range(5))
    assert 1 < at_rest < host_pace.LATE
    with ExitStack() as others:
        for _ in range(12 * (os.cpu_count() or 1)):
            one = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            others.callback(one.wait)
            others.callback(one.kill)
        late = [host_pace.launch_microseconds(device) for _ in range(5)]
    assert max(late) > 2 * at_rest

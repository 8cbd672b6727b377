"""Which of a module's schedules are among the few that are timed."""

import torch

from kernel_lsp.schema import MOST_TIMED
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


def test_a_product_in_one_kernel_is_timed_beside_those_that_write_planes_first():
    module = torch.nn.Linear(1024, 1024).eval()
    exported = capture(module, (torch.randn(8192, 1024),))
    made = synthesize(module, exported, class_name="Linear", import_from="torch.nn", gpu="NVIDIA H100 80GB HBM3")
    timed = made[:MOST_TIMED]
    launched = [one.source.count("@triton.jit") for one in timed]
    assert launched[0] > 1 and launched[-1] == 1
    assert "sums begun again every 32 elements" in timed[-2].variant

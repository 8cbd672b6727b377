"""Windows that overlap from row to row: a lane has several rows, one below the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.extents import rows_that_share
from kernel_lsp.synthesis.schedule.schedules import Unrolled
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.schedule.test_space import kernels_of, meta

H100 = target("H100")


def depthwise(size: int, stride: int = 1, dilation: int = 1) -> Callable[..., Any]:
    return lambda self, x: F.conv2d(x, self.weight, None, stride, size // 2, dilation, self.weight.shape[0])


@pytest.mark.parametrize(
    ("forward", "shape", "weight", "rows"),
    [
        (lambda self, x: F.max_pool2d(x, 4, 1, 1), (8, 64, 512, 512), None, 8),
        (lambda self, x: F.avg_pool2d(x, 3, 1, 1), (8, 64, 56, 56), None, 8),
        (lambda self, x: F.avg_pool2d(x, 3, 1, 1), (8, 512, 14, 14), None, 8),
        # of 24 rows seven would be beyond the end
        (lambda self, x: F.avg_pool2d(x, 3, 1, 1), (8, 512, 17, 20), None, 4),
        (lambda self, x: F.max_pool3d(x, 3, 1, 1), (8, 16, 32, 32, 32), None, 8),
        (depthwise(3), (8, 64, 112, 112), (64, 1, 3, 3), 8),
        (depthwise(7), (8, 96, 56, 56), (96, 1, 7, 7), 8),
        (depthwise(5, stride=2), (8, 96, 56, 56), (96, 1, 5, 5), 8),
        (depthwise(3, stride=2), (8, 96, 56, 56), (96, 1, 3, 3), 8),  # one row of three is shared
        (depthwise(4, stride=3), (8, 96, 56, 56), (96, 1, 4, 4), 1),  # one row of four
        (lambda self, x: F.max_pool2d(x, 2), (8, 64, 56, 56), None, 1),
        (lambda self, x: F.max_pool2d(x, 3, 2, 1), (8, 64, 112, 112), None, 8),
        (lambda self, x: F.avg_pool3d(x, 3, 2, 1), (8, 16, 64, 64, 64), None, 8),
        (lambda self, x: F.max_pool1d(x, 8, 1, 4), (8, 64, 4096), None, 1),  # windows of a line share columns alone
        (lambda self, x: F.max_pool2d(x, (1, 3), 1, (0, 1)), (8, 64, 56, 56), None, 1),
        (lambda self, x: F.avg_pool2d(x, 3, 1), (8, 64, 3, 56), None, 1),
        (lambda self, x: F.avg_pool2d(x, 3, 1, 1), (8, 64, 56, 2), None, 1),  # neighbouring lanes would lie rows apart
        (lambda self, x: F.max_pool2d(x, 3, 2, 1), (8, 64, 48, 12), None, 1),
    ],
)
def test_how_many_rows_a_lane_has(
    forward: Callable[..., Any], shape: tuple[int, ...], weight: tuple[int, ...] | None, rows: int
) -> None:
    given = {"weight": meta(*weight)} if weight else {}
    kernels, hints = kernels_of(forward, meta(*shape), **given)
    (kernel,) = (one for one in kernels if one.folds)
    assert rows_that_share(kernel, hints) == rows
    found = [one for one in space(kernel, H100, hints) if isinstance(one, Unrolled)]
    assert {one.rows for one in found} <= {1, rows} and (rows == 1) == (found[0].rows == 1)


def test_what_is_computed_of_several_tensors_has_fewer_rows() -> None:
    """Each element of a window is several loads then, all written out: 392 of one tensor compile in seconds, 1176 take half a minute."""
    given = {"weight": meta(96, 1, 7, 7), "other": meta(8, 96, 56, 56), "third": meta(8, 96, 56, 56)}
    given |= {"gamma": meta(96, 1, 1)}
    for forward, rows in (
        (lambda self, x: depthwise(7)(self, x * self.gamma), 8),
        (lambda self, x: depthwise(7)(self, x + self.other * self.gamma), 4),
        (lambda self, x: depthwise(7)(self, x + self.other * self.gamma + F.relu(self.third)), 2),
    ):
        kernels, hints = kernels_of(forward, meta(8, 96, 56, 56), **given)
        (kernel,) = (one for one in kernels if one.folds)
        assert rows_that_share(kernel, hints) == rows


def test_few_results_come_one_a_lane_first() -> None:
    """With several rows a lane the device would have too few lanes."""
    (kernel,), hints = kernels_of(lambda self, x: F.max_pool2d(x, 3, 1, 1), meta(1, 64, 56, 56))
    first, *others = space(kernel, H100, hints)
    assert isinstance(first, Unrolled) and first.rows == 1 and any(getattr(one, "rows", 1) > 1 for one in others)


def test_programs_are_fewer_by_the_rows() -> None:
    (kernel,), hints = kernels_of(lambda self, x: F.max_pool2d(x, 3, 1, 1), meta(8, 64, 64, 64))
    one, other = (cost(kernel, Unrolled(256, rows=rows), H100, hints) for rows in (1, 8))
    assert one.bytes == other.bytes and one.programs == 8 * other.programs


def test_programs_of_a_line_are_those_that_are_launched() -> None:
    (kernel,), hints = kernels_of(lambda self, x: F.max_pool2d(x, 4, 1, 1), meta(32, 64, 512, 512))
    first = space(kernel, H100, hints)[0]
    assert first == Unrolled(256, inner=1, rows=8)
    # groups of rows of all channels, and blocks of 511 columns
    assert cost(kernel, first, H100, hints).programs == 32 * 64 * 64 * 2


#: Compiles the first kernel of each file for an H100, without one, and prints how many loads are left.
_COUNT_LOADS = """
import importlib.util, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("kernels", path)
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    kernel = next(one for one in vars(module).values() if isinstance(one, triton.JITFunction))
    constants = {"BLOCK": 256, "ROWS": 8}
    signature = {
        name: "*fp32" if name.endswith("_ptr") else "constexpr" if name in constants else "i32" for name in kernel.arg_names
    }
    done = triton.compile(ASTSource(kernel, signature, constexprs=constants), target=GPUTarget("cuda", 90, 32))
    print(done.asm["ttir"].count("tt.load"))
"""


def test_the_compiler_keeps_one_of_equal_loads(tmp_path: Path) -> None:
    modules = [
        (nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), 3 * (8 + 2) + 9),
        (nn.ConvTranspose2d(16, 16, 3, padding=1, groups=16, bias=False), 3 * (8 + 2) + 9),
        (nn.MaxPool2d(4, 1, 1), 4 * (8 + 3)),
    ]
    files = []
    for number, (module, _) in enumerate(modules):
        exported = capture(module.eval().to("meta"), (torch.empty(64, 16, 64, 64, device="meta"),))
        source = synthesize(module, exported, class_name="Module", import_from="torch.nn", gpu="H100")[0].source
        assert "for below in tl.static_range(ROWS):" in source
        files.append(tmp_path / f"kernel{number}.py")
        files[-1].write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_LOADS, *map(str, files)],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(map(int, done.stdout.split())) == [loads for _, loads in modules]


def test_a_weight_of_a_channel_is_loaded_once_for_a_program() -> None:
    module, x = nn.Conv2d(96, 96, 7, padding=3, groups=96), torch.empty(16, 96, 64, 64, device="meta")
    first = synthesize(
        module, capture(module.eval().to("meta"), (x,)), class_name="Conv2d", import_from="torch.nn", gpu="H100"
    )[0]
    assert "tl.load(weight_ptr + (outer % 96) * 49 + k)" in first.source
    assert "for below in tl.static_range(ROWS):" in first.source and "BLOCK=128, ROWS=8, num_warps=4" in first.source


def test_places_that_are_equal_are_computed_alike() -> None:
    """So the compiler keeps one of several equal loads: the numbers of both loops are added up before a size is multiplied by them."""
    module, x = nn.MaxPool2d(3, 1, 1), torch.empty(16, 64, 64, 64, device="meta")
    found = synthesize(module, capture(module.eval(), (x,)), class_name="Pool", import_from="here", gpu="H100")
    source = found[0].source
    assert "_start + (below + k // 3) * width + k % 3" in source
    assert "_row = below + k // 3 + " in source

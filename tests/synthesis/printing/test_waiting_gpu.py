"""A program that waits for others which do not run ends with an error, and does not go on with what is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp.synthesis.printing.helpers import TOGETHER

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

LAUNCH = """

@triton.jit
def waiting(counter_ptr, o_ptr, count):
    _wait_for(counter_ptr, count)
    tl.store(o_ptr, 1)


counter, result = torch.zeros(2, dtype=torch.int32, device="cuda")[:, None]
waiting[(1,)](counter, result, int(sys.argv[1]))
torch.cuda.synchronize()
print(result.item())
"""


@pytest.mark.parametrize("count", [0, 1])
def test_a_program_that_waits_in_vain_ends_with_an_error(count: int, tmp_path: Path) -> None:
    path = tmp_path / "waiting.py"
    path.write_text("import sys\n\nimport torch, triton, triton.language as tl\n\n" + "\n\n\n".join(TOGETHER) + LAUNCH)
    done = subprocess.run([sys.executable, str(path), str(count)], capture_output=True, text=True, timeout=200)
    if count == 0:
        assert done.stdout == "1\n", done.stderr
    else:
        assert done.returncode != 0 and "launch failure" in done.stderr, (done.stdout, done.stderr[-2000:])

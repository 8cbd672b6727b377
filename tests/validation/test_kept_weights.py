"""A candidate that keeps packed weights in a trial: what a call without its launches has packed serves no other call."""

from __future__ import annotations

import json
from pathlib import Path

from tests.synthesis import interpreted

PROGRAM = """
import json, sys
from pathlib import Path
import torch
from kernel_lsp.validation.interpreter import repair
from kernel_lsp.validation.trial import Trial
from tests.synthesis.printing.packed_modules import MODULES, written
from kernel_lsp.packed_weights import keeps

repair()
torch.set_num_threads(1)
kind, shape = MODULES["product"]
module, x = kind().eval(), torch.randn(shape)
path = Path(sys.argv[1]) / "product_triton.py"
path.write_text(next(one.source for one in written(module, x) if keeps(one.source)))
trial = Trial("ProductTriton", ([], {}), kind, "interpreter")
trial.load({"path": str(path)}, None)
trial.state({}, module.state_dict())


def call(**how):
    answer, out = trial.call({"names": ["x"], **how}, ([x], {}, []))
    with torch.no_grad():
        return answer["launches"], bool(torch.allclose(out, module(x), atol=1e-4, rtol=1e-3))


found = {"muted": call(muted=True)}
found["after"], found["again"] = call(), call()
trial._precompile([trial.module], [])
found["compiled"] = call()
print(json.dumps(found))
"""


def test_what_was_packed_without_launches_is_packed_again(tmp_path: Path) -> None:
    found = json.loads(interpreted.printed(PROGRAM, str(tmp_path)).splitlines()[-1])
    assert found["muted"] == [4, False]
    assert found["after"] == [4, True], "and not with memory that nothing was written to"
    assert found["again"] == [3, True]
    assert found["compiled"] == [4, True]
